"""Attention to a cache: written as a Concat that adds rows, and attention to its result.

    y, present = Attention(q, k, v, past)
    -->
    present = Concat(past, heads of k) ; y = softmax(q @ present_k^T) @ present_v

So the rules for these plain nodes are enough. Which keys come after a query, and are hidden from
it, depends on how many rows there were before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, helper

from ..graph.graph import Graph
from ..onnx.skeleton import domain_of
from ..operators.attention import attention, by_head
from ..operators.attention_contrib import multi_head_attention, projected
from ..operators.attention_core import BOOL, as_bias
from ..operators.emitter import INT64, Emitter, expanded
from ..operators.operator import Expand

# Outputs that are caches.
_PRESENT = (1, 2)
# The axis of their rows.
_ROWS = 2


@dataclass(frozen=True)
class _Kind:
    """An attention operator. past: its inputs that are caches. parts: its queries, keys and values.

    hides: the attribute that hides later keys from a query. mask: the input that is added to the
    logits, or says which of them count. added: inputs that `parts` has added,
    such as a bias.
    """

    expand: Expand
    parts: Callable[[Emitter], Sequence[str]]
    past: tuple[int, int]
    hides: str
    mask: int
    added: tuple[int, ...] = ()


_KINDS = {
    ("", "Attention"): _Kind(attention, by_head, (4, 5), "is_causal", 3),
    ("com.microsoft", "MultiHeadAttention"): _Kind(
        multi_head_attention, projected, (6, 7), "unidirectional", 5, added=(3,)
    ),
}


def cache_places(node: NodeProto) -> list[tuple[int, int]]:
    """The inputs of a node that are caches, each with the output that has more rows of it."""
    kind = _kind(node)
    return list(zip(kind.past, _PRESENT, strict=True)) if kind else []


def _kind(node: NodeProto) -> _Kind | None:
    return _KINDS.get((domain_of(node), node.op_type))


def opened(graph: Graph, node: NodeProto, ahead: deque[NodeProto]) -> bool:
    """Put the nodes that replace an attention ahead; False if the node is no attention."""
    if (kind := _kind(node)) is None:
        return False
    made = _with_rows(graph, node, kind) or expanded(graph, node, kind.expand) or []
    ahead.extendleft(reversed(made))
    return True


def _with_rows(graph: Graph, node: NodeProto, kind: _Kind) -> list[NodeProto]:
    """The node, after nodes that add rows to its caches; empty if it has no caches."""
    emit = Emitter(graph, node)
    past = [emit.input(at) for at in kind.past]
    if not all(past):
        return []
    query, *new = kind.parts(emit)
    present = [node.output[at] for at in _PRESENT]
    for old, rows, made in zip(past, new, present, strict=True):
        emit.nodes.append(helper.make_node("Concat", [old, rows], [made], axis=_ROWS))
    mask = _hiding(emit, kind, past[0], present[0])
    given = {**dict(enumerate(node.input)), **dict.fromkeys((*kind.past, *kind.added), "")}
    given |= {0: query, 1: present[0], 2: present[1], kind.mask: mask}
    rest = NodeProto()
    rest.CopyFrom(node)
    rest.input[:] = [given.get(at, "") for at in range(max(given) + 1)]
    for at in _PRESENT:
        rest.output[at] = ""
    kept = [one for one in node.attribute if one.name != kind.hides]
    del rest.attribute[:]
    rest.attribute.extend(kept)
    return [*emit.nodes, rest]


def _hiding(emit: Emitter, kind: _Kind, past: str, present: str) -> str:
    """The node's own mask, combined with one that hides later keys from a query."""
    mask, tokens = emit.input(kind.mask), emit.shape(emit.input(0))[-2]
    if not emit.attribute(kind.hides, 0) or tokens == 1:
        return mask
    one, nothing, axis = (emit.constant(n, INT64) for n in (1, 0, _ROWS))
    before, after = (emit("Gather", emit("Shape", name), axis) for name in (past, present))
    queries = emit.unsqueeze(emit("Range", before, after, one), 1)
    seen = emit("LessOrEqual", emit("Range", nothing, after, one), queries)
    if mask and emit.dtype(mask) == BOOL:
        return emit("And", mask, seen)
    kind_of = emit.dtype(emit.input(0))
    hidden = as_bias(emit, seen, kind_of, -np.inf)
    return emit("Add", mask, hidden) if mask else hidden
