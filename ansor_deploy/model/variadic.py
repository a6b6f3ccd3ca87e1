"""Sums, maxima and minima of many tensors, said in twos."""

from __future__ import annotations

from onnx import NodeProto, helper

from .graph import Graph, is_op

_CHAINED = {"Sum": "Add", "Max": "Max", "Min": "Min"}


def split_variadic(graph: Graph) -> None:
    """Sum(a, b, c) --> Add(Add(a, b), c); Max and Min likewise.

    TVM imports the variadic form as a stack of all inputs and a reduction over it.
    """
    for node in list(graph.nodes):
        if is_op(node, *_CHAINED) and len(node.input) > 1:
            op = _CHAINED[node.op_type]
            if node.op_type != op or len(node.input) > 2:
                graph.replace(node, _chain(graph, node, op))


def _chain(graph: Graph, node: NodeProto, op: str) -> list[NodeProto]:
    links: list[NodeProto] = []
    left = node.input[0]
    for index, right in enumerate(node.input[1:], start=1):
        last = index == len(node.input) - 1
        result = node.output[0] if last else _link_name(graph, node, index)
        links.append(helper.make_node(op, [left, right], [result], name=_numbered(node, index)))
        left = result
    return links


def _link_name(graph: Graph, node: NodeProto, index: int) -> str:
    return graph.fresh(f"{node.output[0]}_part{index}")


def _numbered(node: NodeProto, index: int) -> str:
    return f"{node.name}_{index}" if node.name else ""
