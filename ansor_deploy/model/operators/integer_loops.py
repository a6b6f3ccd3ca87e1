"""Dot products of bytes as loops over data that is padded with its zero point."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..._lazy_tvm import tirx, tvm
from .signs import BYTES

if TYPE_CHECKING:
    from .integers import Window


def multiplied(data: Any, zero: Any, weight: Any, *, window: Window, given: str) -> Any:
    """Dot products. weight: [taps, in, out], where `in` counts the channels of a group.

    given: the type that is multiplied: the data's own, unchanged, or that of the centred data. Sums
    are of this type, or of int32 if it has 16 bits or fewer.
    """
    dtype = "int32" if given in (*BYTES, "int16") else given
    rank, (*taps, depth, columns) = len(window.strides), map(int, weight.shape)
    lead = len(data.shape) - rank - 1
    padded = _padded(data, zero, depth, window, given)
    made = window.results(padded.shape[lead:-1], taps)
    sizes = [*map(int, data.shape[:lead]), *made]
    widened = given == "int16" and str(data.dtype) != given and math.prod(taps) == 1
    rows = _rows(padded, sizes, window) if widened else None
    over = [tvm.te.reduce_axis((0, extent)) for extent in taps]
    deep = [tvm.te.reduce_axis((0, depth))] if window.groups == 1 or depth > 1 else []

    def element(*at: Any) -> Any:
        column, inside = at[-1], [*deep, 0][0]
        first = column // (columns // window.groups) * depth if window.groups > 1 else 0
        place = [*at[:lead], *window.at(at[lead:-1], over)]
        read = (
            padded(*place, first + inside) if rows is None else rows(_at(at, sizes), first + inside)
        )
        value = read.astype(dtype) * weight(*over, inside, column).astype(dtype)
        return tvm.te.sum(value, axis=[*over, *deep])

    return tvm.te.compute((*sizes, columns), element, name="sums")


def _rows(padded: Any, sizes: list[int], window: Window) -> Any:
    """The rows that the results of a kernel with one tap are made of, one after the other.

    sizes: of the results. Rows are widened in a stage of their own, whatever the lines of the
    image.
    """
    lead = len(sizes) - len(window.strides)
    apart = [math.prod(sizes[at + 1 :]) for at in range(len(sizes))]

    def element(row: Any, channel: Any) -> Any:
        at = [row // step % size for step, size in zip(apart, sizes, strict=True)]
        place = window.at(tuple(at[lead:]), [0] * len(window.strides))
        return padded(*at[:lead], *place, channel)

    return tvm.te.compute((math.prod(sizes), padded.shape[-1]), element, name="rows")


def _at(place: tuple[Any, ...], sizes: list[int]) -> Any:
    """The number of the row at a place."""
    row: Any = 0
    for one, size in zip(place, sizes, strict=False):
        row = row * size + one
    return row


def of_runs(data: Any, zero: Any, weight: Any, *, window: Window, width: int) -> Any:
    """Dot products, in 16 bits, over lines of taps, each of which is one run of steps in memory.

    weight: [taps except along the last axis, run, out]. width: the taps along the last axis. Steps
    of a run behind these are multiplied by zeros.
    """
    *taps, run, columns = map(int, weight.shape)
    first, *sizes, depth = map(int, data.shape)
    whole = [b + n + a for b, n, a in zip(window.before, sizes, window.after, strict=True)]
    lines = _padded_lines(data, zero, run - width * depth, window)
    over = [tvm.te.reduce_axis((0, extent)) for extent in (*taps, run)]

    def element(image: Any, *at: Any) -> Any:
        *place, column = at
        *before, pixel = window.at(tuple(place), [*over[:-1], 0])
        value = lines(image, *before, pixel * depth + over[-1]).astype("int32")
        return tvm.te.sum(value * weight(*over, column).astype("int32"), axis=over)

    made = window.results(whole, [*taps, width])
    return tvm.te.compute((first, *made, columns), element, name="sums")


def _padded_lines(data: Any, zero: Any, more: int, window: Window) -> Any:
    """The data minus its zero point in 16 bits, with a border and a line's pixels as one axis.

    more: elements behind each line.
    """
    first, *sizes, depth = map(int, data.shape)
    before, after = [list(one) for one in (window.before, window.after)]
    shape = [b + n + a for b, n, a in zip(before, sizes, after, strict=True)]
    shape[-1] = shape[-1] * depth + more
    extents = [*sizes[:-1], sizes[-1] * depth]
    before[-1] *= depth
    after[-1] = after[-1] * depth + more

    def element(image: Any, *at: Any) -> Any:
        *place, along = [one - less for one, less in zip(at, before, strict=True)]
        byte = data(image, *place, along // depth, along % depth)
        value = byte.astype("int16") - _as(zero, "int16")
        ends = zip(at, before, after, extents, strict=True)
        inside = [c for one, b, a, n in ends for c in _within(one, b, a, n)]
        border = tirx.const(0, "int16")
        return tirx.if_then_else(tirx.all(*inside), value, border) if inside else value

    return tvm.te.compute((first, *shape), element, name="pad")


def of_lines(data: Any, zero: Any, weight: Any, *, window: Window) -> Any:
    """Dot products of each channel. weight: [taps except along the first axis, lines, out]."""
    *taps, lines, columns = map(int, weight.shape)
    padded = _padded(data, zero, columns, window, "uint8")
    over = [tvm.te.reduce_axis((0, extent)) for extent in (*taps, lines)]

    def element(first: Any, *at: Any) -> Any:
        *place, column = at
        value = padded(first, *window.at(tuple(place), [over[-1], *over[:-1]]), column)
        return tvm.te.sum(value.astype("int32") * weight(*over, column).astype("int32"), axis=over)

    made = window.results(padded.shape[1:-1], [lines, *taps])
    return tvm.te.compute((data.shape[0], *made, columns), element, name="sums")


def _padded(data: Any, zero: Any, depth: int, window: Window, dtype: str) -> Any:
    """The data with a border of zero points; centred if the multiplied type is not its own.

    Channels are padded up to `depth`; the weights that multiply the added ones are zero.
    """
    rank, centred = len(window.strides), dtype not in (*BYTES, str(data.dtype))
    surplus = max(0, depth - int(data.shape[-1])) if window.groups == 1 else 0
    if not (surplus or centred or any(window.before + window.after)):
        return data
    lead, sizes = len(data.shape) - rank - 1, [int(extent) for extent in data.shape]
    before = [0] * lead + [*window.before, 0]
    after = [0] * lead + [*window.after, surplus]
    whole = "int16" if dtype == "int16" else "int32"

    def element(*at: Any) -> Any:
        place = [one - less for one, less in zip(at, before, strict=True)]
        value = data(*place)
        if centred:
            value = (value.astype(whole) - _as(zero, whole, at[-1])).astype(dtype)
        border = tirx.const(0, dtype) if centred else _as(zero, dtype, at[-1])
        ends = zip(at, before, after, sizes, strict=True)
        inside = [c for one, b, a, n in ends for c in _within(one, b, a, n)]
        return tirx.if_then_else(tirx.all(*inside), value, border) if inside else value

    shape = [b + n + a for b, n, a in zip(before, sizes, after, strict=True)]
    return tvm.te.compute(shape, element, name="pad")


def _within(at: Any, before: int, after: int, extent: int) -> list[Any]:
    """The conditions under which a place is within the data."""
    return [at >= before] * (before > 0) + [at < before + extent] * (after > 0)


def _as(zero: Any, dtype: str, channel: Any = None) -> Any:
    """A zero point, which is a number or a tensor, as a number of a type.

    channel: of which it is; a tensor may have one for each.
    """
    if isinstance(zero, int):
        return tirx.const(zero, dtype)
    return zero(*[channel] * len(zero.shape)).astype(dtype)
