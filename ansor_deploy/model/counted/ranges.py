"""Inputs that are as long as a run gives them: what lies behind is room."""

from __future__ import annotations

from onnx import helper

from ..graph.graph import Graph
from ..onnx.bind import model_inputs
from ..operators.appended import DOMAIN
from ..operators.emitter import INT64
from ..ranges import Range
from . import rooms
from .known import Known
from .numbers import symbol


def prepare(graph: Graph, asked: Range) -> None:
    """Let what a range leaves open be so, of a graph with the most that there may be."""
    graph.range = asked
    rooms.own_model(graph)
    for value in model_inputs(graph.proto):
        dims = value.type.tensor_type.shape.dim
        sizes = tuple(dim.dim_value for dim in dims)
        for axis in (axis for name, axis in asked.places if name == value.name):
            graph.rooms[value.name] = sizes
            dims[axis].Clear()
            dims[axis].dim_param = asked.length
    for value in graph.proto.graph.output:
        value.type.tensor_type.ClearField("shape")


def start(known: Known) -> None:
    """Say how much counts of the inputs that a range leaves open."""
    graph = known.graph
    if (asked := graph.range) is None or not graph.rooms:
        return
    long = symbol(_checked(graph, asked), 0, (asked.least, asked.most), "the length of its inputs")
    rooms.say(known, ((name, axis, long) for name, axis in asked.places))


def _checked(graph: Graph, asked: Range) -> str:
    """The length, with which a call fails where there is no room for it."""
    made = graph.fresh(asked.length)
    graph.declare(asked.length, INT64, ())
    graph.declare(made, INT64, ())
    words = {"domain": DOMAIN, "most": asked.most}
    graph.nodes.insert(0, helper.make_node("Length", [asked.length], [made], made, **words))
    return made


def end(graph: Graph) -> bool:
    """Close what a range left open; whether there was such."""
    if (asked := graph.range) is None or not graph.rooms:
        return False
    rooms.close(graph, asked.length)
    return True
