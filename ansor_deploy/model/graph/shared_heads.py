"""Attention heads that share keys: the keys are not copied for each head.

    k: (batch, groups, keys, width), each group for several heads
    y = MatMul(q, Transpose(Reshape(Expand(Unsqueeze(k)))))      (batch, heads, queries, keys)
    -->
    y = Reshape(MatMul(Reshape(q), Transpose(k)))           queries of a group as rows of one matrix

To find which elements of k a product reads, element numbers are moved as the nodes move elements,
whichever nodes those are. A factor of all elements is moved from the keys to the queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from ..onnx.skeleton import attribute
from .graph import Graph, Shape, is_op

_MOVES = ("Expand", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
Move = tuple[str, tuple[int, ...]]  # an operator, and the shape of its result or its axis order


@dataclass(frozen=True)
class _Spread:
    """What a product reads: a tensor, how its elements are moved, and their common factors."""

    source: str
    moves: tuple[Move, ...]
    factors: tuple[str, ...]


def share_heads(graph: Graph) -> None:
    """Let a product read its second operand directly where that is copied for several heads.

    Not where a run decides how many rows there are: those that count would no longer come first
    among the rows of several heads.
    """
    if graph.ranges or not any(is_op(node, "Expand") for node in graph.nodes):
        return
    graph.infer()
    makers = graph.producers()
    for node in [one for one in graph.nodes if is_op(one, "MatMul")]:
        spread = _spread(graph, makers, node.input[1])
        if any(op == "Expand" for op, _ in spread.moves):
            _share(graph, node, spread)


def _spread(graph: Graph, makers: dict[str, NodeProto], name: str) -> _Spread:
    """The tensor from which another is made by moves and by products with a number."""
    moves: list[Move] = []
    factors: list[str] = []
    while (node := makers.get(name)) is not None and name in graph.shapes:
        if is_op(node, *_MOVES) and node.input[0] in graph.shapes:
            order = attribute(node, "perm") if is_op(node, "Transpose") else graph.shapes[name]
            moves.append((node.op_type, tuple(order or ())))
            name = node.input[0]
        elif is_op(node, "Mul") and (pair := scaled(graph, node)) is not None:
            name, factor = pair
            factors.append(factor)
        else:
            break
    return _Spread(name, tuple(reversed(moves)), tuple(factors))


def scaled(graph: Graph, node: NodeProto) -> tuple[str, str] | None:
    """The operand of a product with a number, and the number; None for other nodes."""
    for one, other in (node.input, reversed(node.input)):
        number = graph.value(other)
        if (
            number is not None
            and number.size == 1
            and number.ndim <= len(graph.shapes.get(one, ()))
        ):
            return one, other
    return None


def _share(graph: Graph, node: NodeProto, spread: _Spread) -> None:
    """Replace a product by one that reads the keys as they are, if its heads share them."""
    queries, keys = graph.shapes.get(node.input[0], ()), graph.shapes.get(spread.source, ())
    if len(queries) != 4 or len(keys) != 4 or queries[1] % keys[1] or queries[0] != keys[0]:
        return
    order = _order(keys, spread.moves, queries[1])
    if order is None:
        return
    batch, heads, rows, width = queries
    columns = (keys[2:] if order == (2, 3) else keys[:1:-1])[1]
    made: list[NodeProto] = []

    def emit(op: str, *inputs: str, **words: Any) -> str:
        result = graph.fresh(node.output[0])
        made.append(helper.make_node(op, inputs, [result], result, **words))
        return result

    def reshape(name: str, *shape: int) -> str:
        return emit("Reshape", name, graph.add_constant(np.array(shape, np.int64), node.output[0]))

    left = node.input[0]
    for factor in spread.factors:
        left = emit("Mul", left, factor)
    left = reshape(left, batch, keys[1], heads // keys[1] * rows, width)
    right = spread.source
    if order == (3, 2):
        right = emit("Transpose", right, perm=[0, 1, 3, 2])
    result = reshape(emit("MatMul", left, right), batch, heads, rows, columns)
    made.append(helper.make_node("Identity", [result], [node.output[0]], node.name))
    graph.replace(node, made)


@lru_cache(maxsize=16)
def _order(shape: Shape, moves: tuple[Move, ...], heads: int) -> tuple[int, int] | None:
    """The order of the last two axes in which each of the heads reads its group of a tensor.

    None where it reads anything else.
    """
    numbers = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    moved = numbers
    for op, words in moves:
        if op == "Transpose":
            moved = moved.transpose(words or None)
        else:
            moved = np.broadcast_to(moved, words) if op == "Expand" else moved.reshape(words)
    whole = np.repeat(numbers, heads // shape[1], axis=1)
    for order in ((2, 3), (3, 2)):
        if np.array_equal(moved, whole.transpose(0, 1, *order)):
            return order
    return None
