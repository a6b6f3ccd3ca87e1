"""Inputs with sizes that stay open during the walk, and become those of their rooms after it."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import TensorProto, helper

from ..graph.graph import Graph
from ..onnx.bind import set_shape
from ..onnx.skeleton import with_initializers
from .known import Known
from .numbers import Number


def own_model(graph: Graph) -> None:
    """Give a graph a copy of its model, which may be changed."""
    graph.proto = with_initializers(graph.proto, graph.proto.graph.initializer)


def say(known: Known, counted: Iterable[tuple[str, int, Number]]) -> None:
    """Declare how much counts along axes of inputs, and give inputs the shapes of their rooms."""
    axes: dict[str, dict[int, Number]] = {}
    for name, axis, number in counted:
        axes.setdefault(name, {})[axis] = number
    known.axes.update(axes)
    known.graph.shapes.update(known.graph.rooms)


def close(graph: Graph, *lengths: str) -> None:
    """Give inputs the sizes of their rooms. lengths: new inputs that say how much counts."""
    inner = graph.proto.graph
    for value in inner.input:
        if value.name in graph.rooms:
            set_shape(value, graph.rooms[value.name])
    for length in lengths:
        inner.input.append(helper.make_tensor_value_info(length, TensorProto.INT64, ()))
    graph.rooms.clear()
