"""Graphs of models whose inputs have any length of a range."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from onnx import ModelProto

from ansor_deploy.model.batches import Span
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.counted import ranges
from ansor_deploy.model.graph.graph import Graph
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.model.ranges import at_sizes


def opened(proto: ModelProto, shapes: Mapping[str, tuple[int | Span, ...]]) -> Graph:
    """The canonical graph of a model, with room for the most of its range."""
    found = ranges.asked_of(proto, shapes)
    bound = bind_shapes(proto, at_sizes(shapes, found, [one.most for one in found]))
    return canonical_graph(bound, partial(ranges.prepare, asked=found))
