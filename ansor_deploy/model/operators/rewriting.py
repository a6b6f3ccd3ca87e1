"""Rewrite nodes that TVM has no converter for, or a worse one, to other nodes."""

from __future__ import annotations

from collections import deque

from onnx import NodeProto

from ..graph.fold import fold_constants
from ..graph.graph import Graph
from ..onnx.bounds import count_nodes
from ..onnx.skeleton import name_of
from .blame import importing
from .emitter import UnknownShapeError, expanded
from .table import find


def rewrite_nodes(graph: Graph) -> None:
    """Replace nodes by what their operators are rewritten to, until nothing changes.

    graph: its nodes in topological order, its constants folded; both are so again after each round.

    Raises:
        ModelError: a node beyond what its operator's rewriting supports.
    """
    while _rewritten(graph):
        fold_constants(graph)


def _rewritten(graph: Graph) -> bool:
    """Whether there was anything to rewrite.

    A node with unknown shapes waits for the next round if others were rewritten: its shapes may be
    known once the constants of those are folded.
    """
    done, ahead, changed = [], deque(graph.nodes), False
    while ahead:
        node = ahead.popleft()
        try:
            made = _made(graph, node)
        except UnknownShapeError:
            if not changed:
                raise
            made = None
        if made is None:
            done.append(node)
        else:
            changed = True
            ahead.extendleft(reversed(made))
            count_nodes(len(done) + len(ahead))
            graph.nodes = [*done, *ahead]  # the next node may look at the graph
    return changed


def _made(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    operator = find(node)
    if operator is None:
        return None
    with importing(node.op_type, name_of(node)):
        if operator.expand:
            return expanded(graph, node, operator.expand)
        return operator.rewrite(graph, node) if operator.rewrite else None
