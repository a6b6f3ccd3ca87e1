"""Inputs that stay open while nodes are gone through, and are as large as can be afterwards."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import TensorProto, helper

from ..graph.graph import Graph
from ..onnx.bind import set_shape
from ..onnx.skeleton import with_initializers
from .known import Known
from .numbers import Number


def own_model(graph: Graph) -> None:
    """Give a graph a model of its own, to be changed."""
    graph.proto = with_initializers(graph.proto, graph.proto.graph.initializer)


def say(known: Known, counted: Iterable[tuple[str, int, Number]]) -> None:
    """Say how much counts of inputs, each along an axis, and that they have their rooms."""
    axes: dict[str, dict[int, Number]] = {}
    for name, axis, number in counted:
        axes.setdefault(name, {})[axis] = number
    known.axes.update(axes)
    known.graph.shapes.update(known.graph.rooms)


def close(graph: Graph, *lengths: str) -> None:
    """Let inputs be as large as their rooms. lengths: inputs that say how much counts."""
    inner = graph.proto.graph
    for value in inner.input:
        if value.name in graph.rooms:
            set_shape(value, graph.rooms[value.name])
    for length in lengths:
        inner.input.append(helper.make_tensor_value_info(length, TensorProto.INT64, ()))
    graph.rooms.clear()
