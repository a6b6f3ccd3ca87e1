"""Rows of a tensor that is split into a sequence, gathered from the tensor itself.

    y = SequenceAt(SplitToSequence(x), 2)   -->   y = Gather(x, 2)

PyTorch's exporter writes `unbind` so. A sequence has no room for rows of a size that a run decides.
"""

from __future__ import annotations

from functools import partial

from onnx import NodeProto

from ..graph.cleanup import drop_dead
from ..graph.graph import Graph, is_op, optional_input
from ..onnx.skeleton import attribute
from .emitter import INT64, Emitter, expanded


def gather_split_rows(graph: Graph) -> None:
    """Read rows of a split tensor, at constant places, from that tensor."""
    makers, changed = graph.producers(), False
    for node in [one for one in graph.nodes if is_op(one, "SequenceAt")]:
        split, place = makers.get(node.input[0]), graph.value(node.input[1])
        if split is None or place is None or not _has_row(graph, split, int(place.item())):
            continue
        gathered = partial(_gathered, split=split, place=int(place.item()))
        graph.replace(node, expanded(graph, node, gathered) or [])
        changed = True
    if changed:
        drop_dead(graph)


def _has_row(graph: Graph, node: NodeProto, place: int) -> bool:
    """Whether a node splits a tensor into single rows, and there may be one at a place."""
    if not is_op(node, "SplitToSequence") or optional_input(node, 1):
        return False
    if not (shape := graph.shapes.get(node.input[0])):
        return True
    count = shape[attribute(node, "axis", 0)]
    return -count <= place < count


def _gathered(emit: Emitter, split: NodeProto, place: int) -> str:
    at = emit.constant([place] if attribute(split, "keepdims", 1) else place, INT64)
    return emit("Gather", split.input[0], at, axis=attribute(split, "axis", 0))
