"""DeformConv: a convolution that reads beside its places, as far as offsets say."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .emitter import Emitter
from .operator import REAL, Operator

INT64 = TensorProto.INT64


def deformable_convolution(emit: Emitter) -> str:
    """Interpolate what every tap reads; a product with the weights follows."""
    data, weight = emit.input(0), emit.input(1)
    batch, channels, *_ = emit.shape(data)
    outputs, _, *kernel = emit.shape(weight)
    if len(kernel) != 2:
        raise emit.refuse("only of images")
    made = emit.shape(emit.input(2))[2:]
    taps, places = kernel[0] * kernel[1], made[0] * made[1]
    groups = emit.attribute("group", 1)
    samples = _samples(emit, tuple(kernel), made)
    columns = emit.reshape(samples, batch, groups, channels // groups * taps, places)
    rows = emit.reshape(weight, 1, groups, outputs // groups, channels // groups * taps)
    result = emit.reshape(emit("MatMul", rows, columns), batch, outputs, *made)
    if bias := emit.input(3):
        result = emit("Add", result, emit.reshape(bias, 1, outputs, 1, 1))
    return result


def _samples(emit: Emitter, kernel: tuple[int, ...], made: tuple[int, ...]) -> str:
    """What each tap reads: (batch, offset group, channel of it, tap and place)."""
    batch, channels, *sizes = emit.shape(emit.input(0))
    groups, count = emit.attribute("offset_group", 1), kernel[0] * kernel[1] * made[0] * made[1]
    offsets = emit.reshape(emit.input(2), batch, groups, kernel[0] * kernel[1], 2, *made)
    where = [
        _coordinate(emit, offsets, axis, kernel, made, (batch, groups, 1, count))
        for axis in range(2)
    ]
    flat = emit.reshape(emit.input(0), batch, groups, channels // groups, sizes[0] * sizes[1])
    shape = emit.constant((batch, groups, channels // groups, count), INT64)
    total = ""
    for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
        (row, high), (column, wide) = (
            _corner(emit, where[axis], corner[axis], sizes[axis]) for axis in range(2)
        )
        place = emit("Add", emit("Mul", row, emit.constant(sizes[1], INT64)), column)
        taken = emit("GatherElements", flat, emit("Expand", place, shape), axis=3)
        part = emit("Mul", taken, emit("Mul", high, wide))
        total = emit("Add", total, part) if total else part
    if mask := emit.input(4):
        total = emit("Mul", total, emit.reshape(mask, batch, groups, 1, count))
    return total


def _coordinate(
    emit: Emitter,
    offsets: str,
    axis: int,
    kernel: tuple[int, ...],
    made: tuple[int, ...],
    shape: tuple[int, ...],
) -> str:
    """Where each tap of each place reads along an axis."""
    stride, dilation = ((emit.attribute(n) or (1, 1))[axis] for n in ("strides", "dilations"))
    begin = (emit.attribute("pads") or (0, 0, 0, 0))[axis]
    emit.room_for(*kernel, *made)
    grid = np.zeros((*kernel, *made))
    for of, step in ((axis, dilation), (axis + 2, stride)):
        form = [-1 if at == of else 1 for at in range(4)]
        grid = grid + (np.arange(grid.shape[of]) * step).reshape(form)
    base = emit.constant((grid - begin).reshape(1, 1, 1, -1), emit.dtype(emit.input(0)))
    moved = emit.reshape(emit.slice(offsets, 3, axis, axis + 1), *shape)
    return emit("Add", moved, base)


def _corner(emit: Emitter, where: str, side: int, size: int) -> tuple[str, str]:
    """(index of the element below or above, its weight: none outside of the input)."""
    kind = emit.dtype(emit.input(0))
    zero, last, one = (emit.constant(n, kind) for n in (0, size - 1, 1))
    near = emit("Floor", where)
    near = emit("Add", near, one) if side else near
    weight = emit("Sub", one, emit("Abs", emit("Sub", where, near)))
    # By a comparison, which NaN fails: as an integer it would lie anywhere.
    inside = emit("Min", emit("Where", emit("Less", zero, near), near, zero), last)
    weight = emit("Where", emit("Equal", near, inside), weight, zero)
    return emit.cast(inside, INT64), weight


OPERATORS = (Operator("DeformConv", since=19, types=REAL, expand=deformable_convolution),)
