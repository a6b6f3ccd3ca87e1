"""Sequences to which each step of a loop appends, as rows that the loop stacks.

    s = Loop: s' = SequenceInsert(s, row) ; y = ConcatFromSequence(s)
    -->
    rows = Loop: row, of each step ; y = rows, or the rows of all rows

PyTorch's exporter writes a scripted loop so that ends with `stack` or `cat`. A sequence has no room
for as many rows as a run decides, and what a loop stacks has.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import NodeProto, TensorProto, helper

from ..graph.cleanup import drop_dead
from ..graph.graph import Graph, is_op
from ..onnx.skeleton import attribute, uses
from .emitter import INT64, Emitter, expanded

_FIRST_STATE = 2  # a body takes the number of the step and a condition before its states


def stack_listed_rows(graph: Graph) -> None:
    """Stack what loops append to sequences that begin empty and are only joined, at axis 0."""
    makers, changed = graph.producers(), False
    for node in [one for one in graph.nodes if is_op(one, "Loop")]:
        for name in list(node.output):
            empty = makers.get(_given(node, name))
            if empty is None or not is_op(empty, "SequenceEmpty"):
                continue
            readers = [one for one in graph.nodes if name in uses(one)]
            if _are_joins(readers):
                kind = attribute(empty, "dtype", TensorProto.FLOAT)
                changed = _stacked(graph, node, name, kind, readers) or changed
    if changed:
        drop_dead(graph)


def _given(node: NodeProto, name: str) -> str:
    """The tensor or sequence that a Loop's state begins with; "" if the result is no state."""
    at = list(node.output).index(name) + _FIRST_STATE
    return node.input[at] if name and at < len(node.input) else ""


def _are_joins(readers: list[NodeProto]) -> bool:
    joins = (is_op(one, "ConcatFromSequence") and not attribute(one, "axis") for one in readers)
    return bool(readers) and all(joins)


def _stacked(graph: Graph, node: NodeProto, name: str, kind: int, readers: list[NodeProto]) -> bool:
    """Let the Loop stack the rows of a sequence; whether each step appends one."""
    body, at = attribute(node, "body"), list(node.output).index(name)
    given, result = body.input[at + _FIRST_STATE].name, body.output[at + 1].name
    readers_inside = [one for one in body.node if given in uses(one)]
    insert = next((one for one in body.node if result in one.output), None)
    appends = insert is not None and is_op(insert, "SequenceInsert") and len(insert.input) == 2
    if insert is None or not appends or readers_inside != [insert]:
        return False
    row, rows = graph.fresh(insert.input[1]), graph.fresh(name)
    insert.CopyFrom(helper.make_node("Identity", [insert.input[1]], [row]))
    del node.input[at + _FIRST_STATE], body.input[at + _FIRST_STATE]
    del node.output[at], body.output[at + 1]
    node.output.append(rows)
    body.output.append(helper.make_tensor_value_info(row, kind, None))
    for reader in readers:
        graph.replace(reader, expanded(graph, reader, partial(_joined, rows=rows)) or [])
    return True


def _joined(emit: Emitter, rows: str) -> str:
    """All rows, or the rows of each of them behind each other."""
    if emit.attribute("new_axis"):
        return emit("Identity", rows)
    start, end = (emit.constant([at], INT64) for at in (2, np.iinfo(np.int64).max))
    others = emit("Slice", emit("Shape", rows), start, end)
    return emit("Reshape", rows, emit("Concat", emit.constant([-1], INT64), others, axis=0))
