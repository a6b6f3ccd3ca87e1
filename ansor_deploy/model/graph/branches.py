"""Compute before an If what its branches compute from constants, so that it can be folded.

Then a branch has known shapes, such as those that exporters compute for a Pad.
"""

from collections.abc import Collection

from onnx import GraphProto, NodeProto

from ..onnx.skeleton import nested
from .graph import Graph, is_op
from .subgraph import rename, renamed


def hoist_constants(graph: Graph, operators: Collection[str]) -> bool:
    """Move nodes of these operators out of branches if they read nothing but constants.

    Returns:
        Whether any node was moved.
    """
    branches = [body for node in graph.nodes if is_op(node, "If") for body in nested(node)]
    moved = [node for body in branches for node in _hoisted(graph, body, operators)]
    graph.nodes[:0] = moved
    return bool(moved)


def _hoisted(graph: Graph, body: GraphProto, operators: Collection[str]) -> list[NodeProto]:
    """The nodes to put before the If; what stays in the branch reads their results."""
    results = {value.name for value in body.output}
    names: dict[str, str] = {}
    moved, kept = [], []
    for node in body.node:
        known = all(name in names or name in graph.constants for name in node.input)
        if known and is_op(node, *operators) and results.isdisjoint(node.output):
            names.update((name, graph.fresh(name)) for name in node.output)
            moved.append(renamed(node, names))
        else:
            rename(node, names)
            kept.append(node)
    if moved:
        del body.node[:]
        body.node.extend(kept)
    return moved
