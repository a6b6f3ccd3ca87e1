"""Operators that move or choose elements: the same on integers as on the numbers they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from onnx import NodeProto

from ..onnx.skeleton import attribute
from ..operators.emitter import Emitter
from .real import Real

_MOVES = frozenset((
    "DepthToSpace", "Expand", "Flatten", "Gather", "GlobalMaxPool", "Identity", "MaxPool", "Pad",
    "ReduceMax", "ReduceMin", "Reshape", "Resize", "Slice", "SpaceToDepth", "Split", "Squeeze",
    "Tile", "Transpose", "Unsqueeze", "Upsample",
))  # fmt: skip
# Moves that are made of bytes alone, and not of 16-bit integers.
_OF_BYTES = frozenset((
    "GlobalMaxPool", "MaxPool", "ReduceMax", "ReduceMin", "Resize", "Upsample",
))  # fmt: skip


def moved(emit: Emitter, reals: Mapping[str, Real]) -> list[Real] | None:
    """What the outputs of a node that moves bytes or words stand for; None for any other node."""
    node = emit.node
    if node.domain not in ("", "ai.onnx") or not node.input:
        return None
    if node.op_type == "Concat":
        return _beside(emit, [reals.get(name) for name in node.input])
    if node.op_type == "Where":
        return _chosen(emit, reals.get(node.input[1]))
    real = reals.get(node.input[0])
    if real is None or not _moves(node, real):
        return None
    if real.is_whole:
        return _on_bytes(emit, real) if _only_moves(emit) else None
    return _turned(emit, real) if node.op_type == "Transpose" else None


def _moves(node: NodeProto, real: Real) -> bool:
    """Whether a node may move integers as wide as these."""
    words = real.is_words and node.op_type not in _OF_BYTES
    return node.op_type in _MOVES and (real.is_bytes or words)


def _only_moves(emit: Emitter) -> bool:
    """Whether all elements of the result are elements of the data, or zero."""
    op = emit.node.op_type
    if op in ("Resize", "Upsample"):
        outside = emit.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
        return emit.attribute("mode", "nearest") == "nearest" and not outside
    if op == "Pad":
        value = emit.graph.value(emit.input(2)) if emit.input(2) else np.zeros(())
        constant = emit.attribute("mode", "constant") == "constant"
        return bool(emit.input(1)) and (not constant or (value is not None and not value.any()))
    return op != "MaxPool" or not emit.wants(1)


def _on_bytes(emit: Emitter, real: Real) -> list[Real]:
    node = emit.node
    given = [real.data, *node.input[1:]]
    if node.op_type == "Pad" and attribute(node, "mode", "constant") == "constant":
        given = [*given[:2], emit.constant(real.zero.reshape(()), real.kind), *given[3:]]
    kept = {one.name: emit.attribute(one.name) for one in node.attribute}
    names = emit.several(node.op_type, given, len(node.output), **kept)
    return [real.like(name) for name in names]


def _chosen(emit: Emitter, real: Real | None) -> list[Real] | None:
    """A tensor of bytes, some of them replaced by a number that a byte stands for."""
    value = emit.graph.value(emit.input(2))
    if value is None or value.size != 1 or real is None or not (real.is_whole and real.is_bytes):
        return None
    step = real.steps(value.reshape(()))
    if (step - real.zero.reshape(())).astype(np.float32) * real.scale.reshape(()) != value:
        return None
    data = emit("Where", emit.input(0), real.data, emit.constant(step, real.kind))
    return [real.like(data)]


def _turned(emit: Emitter, real: Real) -> list[Real] | None:
    """A transposed weight that has a scale for each index of an axis; a constant stays one."""
    perm, known = emit.attribute("perm"), emit.graph.value(real.data)
    if perm is None:
        return None
    if known is None:
        data = emit("Transpose", real.data, perm=perm)
    else:
        data = emit.constant(known.transpose(perm), real.kind)
    return [replace(real, data=data, axis=list(perm).index(real.axis))]


def _beside(emit: Emitter, parts: list[Real | None]) -> list[Real] | None:
    whole = [one for one in parts if one is not None and one.is_whole]
    known = [one for one in whole if one.is_bytes or one.is_words]
    if len(known) < len(parts) or not all(one.is_of(known[0]) for one in known):
        return None
    data = emit("Concat", *(one.data for one in known), axis=emit.attribute("axis"))
    return [known[0].like(data)]


def is_beside(node: NodeProto) -> bool:
    """Whether the node concatenates tensors."""
    return node.op_type == "Concat"


def is_move(node: NodeProto) -> bool:
    """Whether the node is an operator that may only move elements."""
    return (node.op_type in _MOVES or is_beside(node)) and node.domain in ("", "ai.onnx")
