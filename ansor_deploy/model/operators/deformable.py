"""DeformConv: a convolution whose taps read at places shifted by offsets."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto

from .emitter import Emitter
from .operator import REAL, Operator

INT64 = TensorProto.INT64


def deformable_convolution(emit: Emitter) -> str:
    """Interpolate the samples of every tap, all channels at once, then multiply by the weights."""
    data, weight = emit.input(0), emit.input(1)
    batch, channels, *_ = emit.shape(data)
    outputs, _, *kernel = emit.shape(weight)
    if len(kernel) != 2:
        raise emit.refuse("only of images")
    made = emit.shape(emit.input(2))[2:]
    taps, places = kernel[0] * kernel[1], made[0] * made[1]
    groups = emit.attribute("group", 1)
    each = channels // groups
    samples = _samples(emit, tuple(kernel), made)
    if emit.attribute("offset_group", 1) > 1:
        samples = emit("Transpose", samples, perm=[0, 2, 3, 1, 4])
    if groups > 1:
        parts = emit.reshape(samples, batch, places, taps, groups, each)
        samples = emit("Transpose", parts, perm=[0, 3, 1, 2, 4])
    rows = emit.reshape(samples, batch, groups, places, taps * each)
    factors = emit.reshape(weight, groups, outputs // groups, each, taps)
    factors = emit("Transpose", factors, perm=[0, 3, 2, 1])
    columns = emit.reshape(factors, 1, groups, taps * each, outputs // groups)
    product = emit("Transpose", emit("MatMul", rows, columns), perm=[0, 1, 3, 2])
    result = emit.reshape(product, batch, outputs, *made)
    if bias := emit.input(3):
        result = emit("Add", result, emit.reshape(bias, 1, outputs, 1, 1))
    return result


def _samples(emit: Emitter, kernel: tuple[int, ...], made: tuple[int, ...]) -> str:
    """The samples of each tap: (batch, offset group, place, tap, channel of the group)."""
    batch, _, *sizes = emit.shape(emit.input(0))
    groups, taps, places = emit.attribute("offset_group", 1), prod(kernel), prod(made)
    offsets = emit.reshape(emit.input(2), batch, groups, taps, 2, places)
    where = [
        _coordinate(emit, offsets, axis, kernel, made, (batch, groups, taps, places))
        for axis in range(2)
    ]
    table = _rows_of_channels(emit, groups)
    images = np.arange(batch * groups).reshape(batch, groups, 1, 1) * prod(sizes)
    first, mask = emit.constant(images, INT64), emit.input(4)
    if mask:
        mask = emit.reshape(mask, batch, groups, taps, places)
        mask = emit("Transpose", mask, perm=[0, 1, 3, 2])
    total = ""
    for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
        (row, high), (column, wide) = (
            _corner(emit, where[axis], corner[axis], sizes[axis]) for axis in range(2)
        )
        place = emit("Add", emit("Mul", row, emit.constant(sizes[1], INT64)), column)
        taken = emit("Gather", table, emit("Add", place, first), axis=0)
        factor = emit("Mul", high, wide)
        factor = emit("Mul", factor, mask) if mask else factor
        part = emit("Mul", taken, emit.unsqueeze(factor, 4))
        total = emit("Add", total, part) if total else part
    return total


def _rows_of_channels(emit: Emitter, groups: int) -> str:
    """The input as rows: for each element of an image, the channels of an offset group."""
    batch, channels, *sizes = emit.shape(emit.input(0))
    parts = emit.reshape(emit.input(0), batch, groups, channels // groups, prod(sizes))
    turned = emit("Transpose", parts, perm=[0, 1, 3, 2])
    return emit.reshape(turned, batch * groups * prod(sizes), channels // groups)


def _coordinate(
    emit: Emitter,
    offsets: str,
    axis: int,
    kernel: tuple[int, ...],
    made: tuple[int, ...],
    shape: tuple[int, ...],
) -> str:
    """Where each tap of each place reads along an axis: (batch, offset group, place, tap)."""
    stride, dilation = ((emit.attribute(n) or (1, 1))[axis] for n in ("strides", "dilations"))
    begin = (emit.attribute("pads") or (0, 0, 0, 0))[axis]
    emit.room_for(*kernel, *made)
    grid = np.zeros((*kernel, *made))
    for of, step in ((axis, dilation), (axis + 2, stride)):
        form = [-1 if at == of else 1 for at in range(4)]
        grid = grid + (np.arange(grid.shape[of]) * step).reshape(form)
    grid = (grid - begin).reshape(shape[2:]).T
    moved = emit.reshape(emit.slice(offsets, 3, axis, axis + 1), *shape)
    turned = emit("Transpose", moved, perm=[0, 1, 3, 2])
    return emit("Add", turned, emit.constant(grid, emit.dtype(emit.input(0))))


def _corner(emit: Emitter, where: str, side: int, size: int) -> tuple[str, str]:
    """(index of the element below or above, its weight, which is 0 outside the input)."""
    kind = emit.dtype(emit.input(0))
    zero, last, one = (emit.constant(n, kind) for n in (0, size - 1, 1))
    near = emit("Floor", where)
    near = emit("Add", near, one) if side else near
    weight = emit("Sub", one, emit("Abs", emit("Sub", where, near)))
    # A comparison fails for NaN, so that it becomes 0; as an integer it could be any index.
    inside = emit("Min", emit("Where", emit("Less", zero, near), near, zero), last)
    weight = emit("Where", emit("Equal", near, inside), weight, zero)
    return emit.cast(inside, INT64), weight


OPERATORS = (Operator("DeformConv", since=19, types=REAL, expand=deformable_convolution),)
