"""Stacks of tensors without a separate copy of each tensor.

    y = Concat(Unsqueeze(a), Unsqueeze(b), ..)      along the new axis
    -->
    y = Reshape(Concat(a, b, ..))                   along the axis that was in its place

Exporters write `stack` so, and the steps of a Scan or a Loop end up so.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, helper

from ..onnx.skeleton import attribute
from .graph import Graph, Shape, is_op, optional_input


def join_stacks(graph: Graph) -> None:
    """Concatenate tensors of one shape as they are, and make the stack a view of the result."""
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
    """The shape of all the tensors; () if they differ or a shape is not known."""
    found = {shapes.get(name) for name in names}
    (one, *others) = found
    return () if others or one is None else one


def _axis(graph: Graph, node: NodeProto | None, rank: int) -> int | None:
    """The axis that an Unsqueeze of a tensor of this rank adds; None if it adds several."""
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
