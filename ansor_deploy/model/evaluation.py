"""Evaluate a canonical graph of integers in NumPy: its results on every processor, bit for bit.

Sums of products of integers are exact (`integer_math.py`). Everything else moves elements, or is
one operation on each element, which NumPy rounds as IEEE 754 says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from .graph.graph import FLOATS, Graph
from .integer_math import conv_integer, mat_mul_integer, max_pool
from .onnx.reference import run_reference
from .onnx.skeleton import needed, uses

_OWN: dict[str, Callable[..., np.ndarray]] = {
    "ConvInteger": conv_integer,
    "MatMulInteger": mat_mul_integer,
    "MaxPool": max_pool,
}
_INTEGER_ONLY = frozenset(("MaxPool", "ReduceSum"))
# Operators that ONNX's own evaluator gets right and computes as fast as NumPy.
_REFERENCE = frozenset((
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "DepthToSpace", "Div", "Equal", "Expand",
    "Flatten", "Floor", "Gather", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual",
    "Max", "Min", "Mul", "Neg", "Not", "Or", "Pad", "ReduceMax", "ReduceMin", "ReduceSum", "Relu",
    "Reshape", "Round", "Slice", "SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Tile",
    "Transpose", "Unsqueeze", "Where",
))  # fmt: skip


def evaluated(
    graph: Graph, feed: Mapping[str, np.ndarray], names: Sequence[str]
) -> dict[str, np.ndarray]:
    """Tensors of a graph, by name; without those that depend on an operator unknown here.

    graph: its nodes in topological order, its types known. feed: the inputs, by name.
    """
    names = [one for one in names if all(_is_known(graph, n) for n in needed(graph.nodes, [one]))]
    nodes = needed(graph.nodes, names)
    held = dict(feed)
    left = Counter([*names, *(name for node in nodes for name in uses(node))])
    for node in nodes:
        held.update(zip(node.output, _results(graph, node, held), strict=False))
        left.subtract(uses(node))
        for name in [name for name in uses(node) if not left[name]]:
            held.pop(name, None)
    return {name: _tensor(graph, name, held) for name in names}


def _is_known(graph: Graph, node: NodeProto) -> bool:
    kinds = {graph.dtypes.get(name, 0) for name in (*node.input, *node.output) if name}
    narrow = kinds & {*FLOATS} - {TensorProto.FLOAT} and node.op_type != "Cast"
    if node.domain not in ("", "ai.onnx") or narrow:
        return False
    if node.op_type in _INTEGER_ONLY and kinds & {0, TensorProto.FLOAT}:
        return False
    return node.op_type in _REFERENCE or (node.op_type in _OWN and len(node.output) == 1)


def _results(graph: Graph, node: NodeProto, held: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
    given = [_tensor(graph, name, held) if name else None for name in node.input]
    if node.op_type in _OWN:
        return [_OWN[node.op_type](node, *given)]
    with np.errstate(all="ignore"):
        return [np.asarray(one) for one in run_reference(node, given, graph.opset)]


def _tensor(graph: Graph, name: str, held: Mapping[str, np.ndarray]) -> np.ndarray:
    found = held.get(name)
    return np.asarray(graph.value(name)) if found is None else found
