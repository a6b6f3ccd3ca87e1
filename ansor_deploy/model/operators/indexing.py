"""Operators that pick, place or mark elements by index."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..graph import optional_input
from .emitter import Emitter, expansion

INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL


@expansion("OneHot", since=9, constant=(1,))
def one_hot(emit: Emitter) -> str:
    """One of two values, by whether the index is the place; negative ones count from the end."""
    depth = emit.graph.value(emit.input(1))
    if depth is None:
        raise emit.refuse("its depth must be constant")
    size, rank = int(depth.reshape(())), len(emit.shape(emit.input(0))) + 1
    axis = emit.attribute("axis", -1) % rank
    form = [-1 if at == axis else 1 for at in range(rank)]
    places = np.arange(size).reshape(form)
    asked = emit.unsqueeze(emit.cast(emit.input(0), INT64), axis)
    hit = emit(
        "Or",
        emit("Equal", asked, emit.constant(places, INT64)),
        emit("Equal", asked, emit.constant(places - size, INT64)),
    )
    off, on = (emit("Gather", emit.input(2), emit.constant(at, INT64)) for at in (0, 1))
    return emit("Where", hit, on, off)


@expansion("ReverseSequence", since=10)
def reverse_sequence(emit: Emitter) -> str:
    """The first elements of each sequence in reverse, as many as its length says."""
    shape = emit.shape(emit.input(0))
    batch, time = emit.attribute("batch_axis", 1), emit.attribute("time_axis", 0)
    order = [batch, time, *(at for at in range(len(shape)) if at not in (batch, time))]
    rows = emit("Transpose", emit.input(0), perm=order)
    flat = emit.reshape(rows, shape[batch] * shape[time], *(shape[at] for at in order[2:]))
    steps = emit.constant(np.arange(shape[time])[None], INT64)
    length = emit.reshape(emit.cast(emit.input(1), INT64), shape[batch], 1)
    last = emit("Sub", length, emit.constant(1, INT64))
    chosen = emit("Where", emit("Less", steps, length), emit("Sub", last, steps), steps)
    first = emit.constant(np.arange(shape[batch])[:, None] * shape[time], INT64)
    taken = emit("Gather", flat, emit("Add", chosen, first), axis=0)
    return emit("Transpose", taken, perm=np.argsort(order).tolist())


@expansion("TensorScatter", since=24)
def tensor_scatter(emit: Emitter) -> str:
    """The update where it was to be written along the axis, else what was there before."""
    past, update = emit.input(0), emit.input(1)
    shape, steps = emit.shape(past), emit.shape(update)
    axis = emit.attribute("axis", -2) % len(shape)
    form = [1] * len(shape)
    form[axis] = shape[axis]
    places = emit.constant(np.arange(shape[axis]).reshape(form), INT64)
    zero = emit.constant(0, INT64)
    starts = emit.reshape(emit.input(2) or zero, *([-1] + [1] * (len(shape) - 1)))
    behind = emit("Sub", places, emit.cast(starts, INT64))
    if emit.attribute("mode", "linear") == "circular":
        behind = emit("Mod", behind, emit.constant(shape[axis], INT64))
    written = emit(
        "And",
        emit("Not", emit("Less", behind, zero)),
        emit("Less", behind, emit.constant(steps[axis], INT64)),
    )
    inside = emit("Where", written, behind, zero)
    index = emit("Expand", inside, emit.constant(shape, INT64))
    return emit("Where", written, emit("GatherElements", update, index, axis=axis), past)


@expansion("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(emit: Emitter) -> str:
    """Elements of the last axis."""
    rank = len(emit.shape(emit.input(0)))
    index = emit.reshape(emit.input(1), -1)
    taken = emit("Gather", emit.input(0), index, axis=rank - 1)
    return emit.reshape(taken, 1, -1) if rank == 1 else taken


@expansion("Binarizer", domain="ai.onnx.ml")
def binarizer(emit: Emitter) -> str:
    """One where the element is above the threshold, else zero."""
    kind = emit.dtype(emit.input(0))
    limit = emit.constant(emit.attribute("threshold", 0.0), kind)
    return emit.cast(emit("Greater", emit.input(0), limit), kind)


@expansion("Dropout")
def dropout(emit: Emitter) -> list[str] | None:
    """At inference everything is kept; in training only with a ratio of zero."""
    training, ratio = (emit.graph.value(optional_input(emit.node, index)) for index in (2, 1))
    asked = bool(emit.input(2)) and (training is None or bool(training.any()))
    if emit.graph.opset < 7:
        asked, ratio = not emit.attribute("is_test", 0), np.array(emit.attribute("ratio", 0.5))
    if asked and (ratio is None or ratio.any()):
        raise emit.refuse("in training its results are random")
    data = emit.input(0)
    kept = emit.constant(np.ones(emit.shape(data), bool), BOOL) if emit.wants(1) else ""
    return [emit("Identity", data), kept]
