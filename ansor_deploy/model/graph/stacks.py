"""Stacks of tensors without a stage for each of them.

    y = Concat(Unsqueeze(a), Unsqueeze(b), ..)      along the axis that these make
    -->
    y = Reshape(Concat(a, b, ..))                   along the axis that stood there

What exporters make of `stack`, and what the steps of a Scan or a Loop come to.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, helper

from ..onnx.skeleton import attribute
from .graph import Graph, Shape, is_op, optional_input


def join_stacks(graph: Graph) -> None:
    """Let tensors of one shape be concatenated as they are, and the result be a view."""
    makers = graph.producers()
    found = [(node, [makers.get(name) for name in node.input]) for node in graph.nodes]
    stacks = [(node, parts) for node, parts in found if is_op(node, "Concat") and _all_made(parts)]
    if stacks:
        graph.infer()
    for node, parts in stacks:
        sources = [part.input[0] for part in parts if part is not None]
        shape = _common_shape(graph.shapes, sources)
        axis = attribute(node, "axis", 1) % (len(shape) + 1)
        if axis < len(shape) and all(_axis(graph, one, len(shape)) == axis for one in parts):
            _join(graph, node, sources, shape, axis)


def _all_made(parts: list[NodeProto | None]) -> bool:
    return all(part is not None and is_op(part, "Unsqueeze") for part in parts)


def _common_shape(shapes: Mapping[str, Shape], names: list[str]) -> Shape:
    """The shape that all tensors have; that of a number where they differ or it is not known."""
    found = {shapes.get(name) for name in names}
    (one, *others) = found
    return () if others or one is None else one


def _axis(graph: Graph, node: NodeProto | None, rank: int) -> int | None:
    """The one axis that an Unsqueeze of a tensor of so many makes; None for several."""
    given = graph.value(optional_input(node, 1)) if node is not None else None
    axes = attribute(node, "axes", []) if given is None else given.reshape(-1).tolist()
    return axes[0] % (rank + 1) if len(axes) == 1 else None


def _join(graph: Graph, node: NodeProto, sources: list[str], shape: Shape, axis: int) -> None:
    rows, result = graph.fresh(f"{node.output[0]}_rows"), node.output[0]
    stacked = (*shape[:axis], len(sources), *shape[axis:])
    wanted = graph.add_constant(np.array(stacked, np.int64), f"{result}_shape")
    joined = helper.make_node("Concat", sources, [rows], name=rows, axis=axis)
    view = helper.make_node("Reshape", [rows, wanted], [result], name=node.name)
    graph.replace(node, [joined, view])
