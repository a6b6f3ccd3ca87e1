"""Attention that multiplies values by turned weights: its result is turned instead.

    y = MatMul(v, Transpose(Softmax(s)))       v: (.., width, keys), s: (.., queries, keys)
    -->
    y = Transpose(MatMul(Softmax(s), Transpose(v)))

The weights are the largest tensor of the three. In this order they are one task with their softmax
and both products (`relax/attention.py`), and lie in no memory as a whole.
"""

from __future__ import annotations

from onnx import NodeProto, helper

from ..onnx.skeleton import attribute
from .graph import Graph, is_op

_SINCE_LAST = 13  # the first version of Softmax that is along one axis, by default the last


def turn_products(graph: Graph) -> None:
    """Let products read the rows of a softmax as rows."""
    products = [node for node in graph.nodes if is_op(node, "MatMul")]
    if not products or not any(is_op(node, "Softmax") for node in graph.nodes):
        return
    graph.infer()
    makers, readers = graph.producers(), graph.consumers()
    for node in products:
        turned = makers.get(node.input[1])
        if turned is None or not is_op(turned, "Transpose"):
            continue
        softmax = makers.get(turned.input[0])
        alone = all(
            len(readers[name]) == 1 and name not in graph.output_names
            for name in (node.input[1], turned.input[0])
        )
        if alone and softmax is not None and _is_by_rows(graph, softmax, turned, node.input[0]):
            _turn(graph, node, turned)


def _is_by_rows(graph: Graph, softmax: NodeProto, turned: NodeProto, values: str) -> bool:
    """Whether a softmax is along its rows, of which only these two axes are exchanged."""
    rank = len(graph.shapes.get(softmax.output[0], ())) if is_op(softmax, "Softmax") else 0
    if rank < 2 or len(graph.shapes.get(values, ())) != rank:
        return False
    axis = attribute(softmax, "axis", -1 if graph.opset >= _SINCE_LAST else 1)
    return axis % rank == rank - 1 and attribute(turned, "perm") == _exchanged(rank)


def _exchanged(rank: int) -> list[int]:
    return [*range(rank - 2), rank - 1, rank - 2]


def _turn(graph: Graph, node: NodeProto, turned: NodeProto) -> None:
    """Replace a product of values and of turned weights."""
    order = attribute(turned, "perm")
    values, made = graph.fresh(node.input[0]), graph.fresh(node.output[0])
    graph.replace(
        node,
        [
            helper.make_node("Transpose", [node.input[0]], [values], values, perm=order),
            helper.make_node("MatMul", [turned.input[0], values], [made], node.name),
            helper.make_node("Transpose", [made], [node.output[0]], made, perm=order),
        ],
    )
