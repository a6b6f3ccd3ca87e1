"""Operators that pick, place or mark elements by index."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto

from ..._lazy_tvm import relax, tirx
from .converting import Call
from .emitter import Emitter
from .indices import in_range
from .operator import Limit, Operator, in_branch

INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL
BYTES = 256  # the size of a table that has an entry for every byte


def gather(call: Call) -> Any:
    """Rows of a table; TVM's converter takes it if the data is a shape."""
    if not all(_is_static(each) for each in call.inputs):
        return call.by_tvm()
    if call.dtype(1) == "uint8" and call.shape(0) == (BYTES,):
        return relax.op.take(call.inputs[0], call.inputs[1], axis=0, mode="fast")
    axis = call.attribute("axis", 0) % len(call.shape(0))
    # "clip", since a kernel that is measured alone is called with any indices.
    return relax.op.take(call.inputs[0], _along(call, axis), axis=axis, mode="clip")


def gather_elements(call: Call) -> Any:
    """An element for each index, at its own place along the other axes."""
    axis = call.attribute("axis", 0) % len(call.shape(0))
    return relax.op.gather_elements(call.inputs[0], _along(call, axis), axis)


def gather_nd(call: Call) -> Any:
    """A slice for each row of indices; a reshape if they name all slices in order.

    PyTorch's exporter reads masks of any size so: by the numbers of all rows and columns.
    """
    batch = call.attribute("batch_dims", 0)
    if not batch and _names_all(call):
        return relax.op.reshape(call.inputs[0], (*call.shape(1)[:-1], *_rest(call)))
    return relax.op.gather_nd(call.inputs[0], _coordinates(call, batch), batch)


def _names_all(call: Call) -> bool:
    """Whether the rows of indices are constant and name all slices, one after the other."""
    named, leading = call.value(1), call.shape(0)[: call.shape(1)[-1]]
    if named is None or named.size != prod(leading) * len(leading):
        return False
    wanted = np.stack(np.indices(leading), axis=-1)
    return bool(leading) and np.array_equal(named.reshape(wanted.shape), wanted)


def _rest(call: Call) -> tuple[int, ...]:
    """The extents of a slice that a row of indices names."""
    return tuple(call.shape(0)[call.shape(1)[-1] :])


def scatter_elements(call: Call) -> Any:
    """The data, with updates written or added at their places along an axis."""
    axis = call.attribute("axis", 0) % len(call.shape(0))
    data, _, updates = call.inputs
    how = _reduction(call)
    return relax.op.scatter_elements(data, _along(call, axis), updates, axis=axis, reduction=how)


def scatter_nd(call: Call) -> Any:
    """The data, with slices written or added at the rows of indices."""
    data, _, updates = call.inputs
    return relax.op.scatter_nd(data, _coordinates(call, 0), updates, _reduction(call))


def _is_static(value: Any) -> bool:
    """Whether it is a tensor of known shape; not a shape, or a number from one."""
    shape = getattr(value.ty, "shape", None) if isinstance(value, relax.Expr) else None
    return isinstance(shape, relax.ShapeExpr) and all(isinstance(n, tirx.IntImm) for n in shape)


def _along(call: Call, axis: int) -> Any:
    """A node's indices along one axis of its data."""
    return in_range(call, call.inputs[1], [call.shape(0)[axis]])


def _coordinates(call: Call, batch: int) -> Any:
    """A node's indices whose last axis has one for each axis of its data."""
    return in_range(call, call.inputs[1], call.shape(0)[batch : batch + call.shape(1)[-1]])


def _reduction(call: Call) -> str:
    how = str(call.attribute("reduction", "none"))
    return "update" if how == "none" else how


def max_unpool(call: Call) -> Any:
    """Zeros, with the elements at the places of the result that the indices name."""
    shape, kernel = call.shape(0), call.attribute("kernel_shape")
    rank = len(kernel)
    strides = call.attribute("strides") or [1] * rank
    pads = call.attribute("pads") or [0] * 2 * rank
    made = [
        (n - 1) * strides[at] + kernel[at] - pads[at] - pads[rank + at]
        for at, n in enumerate(shape[2:])
    ]
    given = call.value(2)
    made = [*shape[:2], *made] if given is None else [int(n) for n in given]
    places = in_range(call, call.inputs[1], [prod(made)], negative=False)
    zeros = call.emit(relax.op.zeros((prod(made),), call.dtype(0)))
    flat = [call.emit(relax.op.reshape(one, (prod(shape),))) for one in (places, call.inputs[0])]
    return relax.op.reshape(call.emit(relax.op.scatter_elements(zeros, *flat, axis=0)), made)


def one_hot(emit: Emitter) -> str:
    """One of two values, depending on whether the index is the place; negative ones wrap around."""
    depth = emit.graph.value(emit.input(1))
    if depth is None:
        raise emit.refuse("its depth must be constant")
    size, rank = int(depth.reshape(())), len(emit.shape(emit.input(0))) + 1
    axis = emit.attribute("axis", -1) % rank
    form = [-1 if at == axis else 1 for at in range(rank)]
    emit.room_for(2, size)
    places = np.arange(size).reshape(form)
    asked = emit.unsqueeze(emit.cast(emit.input(0), INT64), axis)
    hit = emit(
        "Or",
        emit("Equal", asked, emit.constant(places, INT64)),
        emit("Equal", asked, emit.constant(places - size, INT64)),
    )
    off, on = (emit("Gather", emit.input(2), emit.constant(at, INT64)) for at in (0, 1))
    return emit("Where", hit, on, off)


def reverse_sequence(emit: Emitter) -> str:
    """Reverse the first elements of each sequence, as many as its length says."""
    shape = emit.shape(emit.input(0))
    batch, time = emit.attribute("batch_axis", 1), emit.attribute("time_axis", 0)
    order = [batch, time, *(at for at in range(len(shape)) if at not in (batch, time))]
    rows = emit("Transpose", emit.input(0), perm=order)
    flat = emit.reshape(rows, shape[batch] * shape[time], *(shape[at] for at in order[2:]))
    emit.room_for(shape[time] + shape[batch])
    steps = emit.constant(np.arange(shape[time])[None], INT64)
    given = emit.known(emit.cast(emit.input(1), INT64), shape[time] + 1)
    length = emit.reshape(given, shape[batch], 1)
    last = emit("Sub", length, emit.constant(1, INT64))
    chosen = emit("Where", emit("Less", steps, length), emit("Sub", last, steps), steps)
    first = emit.constant(np.arange(shape[batch])[:, None] * shape[time], INT64)
    taken = emit("Gather", flat, emit("Add", chosen, first), axis=0)
    return emit("Transpose", taken, perm=np.argsort(order).tolist())


def tensor_scatter(emit: Emitter) -> str:
    """The update where it is to be written along the axis, else the previous elements."""
    past, update = emit.input(0), emit.input(1)
    shape, steps = emit.shape(past), emit.shape(update)
    axis = emit.attribute("axis", -2) % len(shape)
    form = [1] * len(shape)
    form[axis] = shape[axis]
    places = emit.constant(np.arange(shape[axis]).reshape(form), INT64)
    zero = emit.constant(0, INT64)
    circular = emit.attribute("mode", "linear") == "circular"
    starts = emit.cast(emit.input(2), INT64) if emit.input(2) else zero
    if circular:  # any start is allowed that is not negative
        starts = emit("Add", starts, emit.known(emit("Min", starts, zero), 1))
    else:
        starts = emit.known(starts, shape[axis] - steps[axis] + 1)
    starts = emit.reshape(starts, *([-1] + [1] * (len(shape) - 1)))
    behind = emit("Sub", places, starts)
    if circular:
        behind = emit("Mod", behind, emit.constant(shape[axis], INT64))
    written = emit(
        "And",
        emit("Not", emit("Less", behind, zero)),
        emit("Less", behind, emit.constant(steps[axis], INT64)),
    )
    inside = emit("Where", written, behind, zero)
    index = emit("Expand", inside, emit.constant(shape, INT64))
    return emit("Where", written, emit("GatherElements", update, index, axis=axis), past)


def array_feature_extractor(emit: Emitter) -> str:
    """Elements of the last axis."""
    rank = len(emit.shape(emit.input(0)))
    index = emit.reshape(emit.input(1), -1)
    taken = emit.looked_up(emit.input(0), index, emit.dtype(emit.input(1)), rank - 1)
    return emit.reshape(taken, 1, -1) if rank == 1 else taken


def binarizer(emit: Emitter) -> str:
    """One where the element is above the threshold, else zero."""
    kind = emit.dtype(emit.input(0))
    limit = emit.constant(emit.attribute("threshold", 0.0), kind)
    return emit.cast(emit("Greater", emit.input(0), limit), kind)


_INFERS = Limit(
    "no branch of an If that a run chooses trains it", lambda use: in_branch(use) and use.input(2)
)


def dropout(emit: Emitter) -> list[str] | None:
    """Keep everything at inference; in training, which is random, only if the ratio is zero."""
    training, ratio = (emit.graph.value(emit.input(index)) for index in (2, 1))
    asked = bool(emit.input(2)) and (training is None or bool(training.any()))
    if emit.graph.opset < 7:
        asked, ratio = not emit.attribute("is_test", 0), np.array(emit.attribute("ratio", 0.5))
    if asked and (ratio is None or ratio.any()):
        raise emit.refuse("in training its results are random")
    data = emit.input(0)
    kept = emit.constant(np.ones(emit.shape(data), bool), BOOL) if emit.wants(1) else ""
    return [emit("Identity", data), kept]


OPERATORS = (
    Operator("Gather", convert=gather),
    Operator("GatherElements", since=11, convert=gather_elements),
    Operator("GatherND", since=11, convert=gather_nd),
    Operator("Scatter", since=9, convert=scatter_elements),
    Operator("ScatterElements", since=11, convert=scatter_elements),
    Operator("ScatterND", since=11, convert=scatter_nd),
    Operator("MaxUnpool", since=9, constant=(2,), convert=max_unpool),
    Operator("OneHot", since=9, constant=(1,), expand=one_hot),
    Operator("ReverseSequence", since=10, expand=reverse_sequence),
    Operator("TensorScatter", since=24, expand=tensor_scatter),
    Operator("ArrayFeatureExtractor", domain="ai.onnx.ml", expand=array_feature_extractor),
    Operator("Binarizer", domain="ai.onnx.ml", expand=binarizer),
    Operator("Dropout", limits=(_INFERS,), expand=dropout),
)
