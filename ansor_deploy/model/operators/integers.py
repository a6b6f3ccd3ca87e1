"""ConvInteger: dot products of bytes with sums in int32, and what MatMulInteger shares with it.

    sum of (x - xz)(w - wz) = sum of x w - xz * (sum of w) - wz * (sum of (x - xz))

The first sum is over the bytes as they are, w signed and x unsigned or signed, as processors
multiply them (`marks/dot.py`). The second is known when the model is built, and the third is zero
where weights are symmetric. A convolution's border holds the zero point, so that each of its sums
has all the taps. A processor that multiplies 16 bits gets x - xz, widened before it is multiplied,
which makes one sum of the first two; where pixels have fewer than four channels, a line of taps is
one run of steps there, so that no pixel is filled up with zeros. Weights that are not constant, and
sums over few channels, are multiplied in float32 where that is exact.

x may be signed 16-bit integers if the caller knows that no sum overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..._lazy_tvm import relax, tvm
from ...marks.dot import PAIR, STEPS, current_has_dot, current_is_signed, current_widens
from .converting import Call
from .integer_loops import multiplied, of_lines, of_runs
from .operator import Operator
from .signs import constant, int32, number, signed, unsigned

# The most groups that may be merged into one. That multiplies the multiply-adds by as many, which
# is how much faster bytes are than float32 in vectors that are not full.
MOST_JOINED = 8
# Sums in a vector, for the widest vectors that processors have.
VECTOR = 16
# The same for processors that multiply 16-bit pairs: most have no wider vectors.
HALF_VECTOR = 8
# Integers up to here are exact in float32.
_EXACT = 1 << 24
INTEGERS = frozenset(("int8", "uint8", "int16", "int32"))


def conv_integer(call: Call) -> Any:
    """Conv of (x - zero) with (w - zero)."""
    weight, rank = centred(call, 1, 3), len(call.shape(0)) - 2
    deep = weight is not None and weight.shape[1] == 1 and call.value(2) is not None
    if weight is None or not (is_number(call.input(2)) or deep):
        return _any_conv(call)
    window = Window.of(call, weight.shape[2:])
    kernel, window = _joined(weight.transpose(*range(2, rank + 2), 1, 0), window)
    data = call.emit(relax.op.permute_dims(call.inputs[0], [0, *range(2, rank + 2), 1]))
    way = _way(kernel, window, is_words(data))
    total = way(call, data, call.input(2), kernel, window)
    return relax.op.permute_dims(total, [0, rank + 1, *range(1, rank + 1)])


def _joined(kernel: np.ndarray, window: Window) -> tuple[np.ndarray, Window]:
    """The kernel with groups merged until they fill vectors, and its window.

    Weights between merged groups are 0. kernel: [taps, in of a group, out]. Single channels are not
    merged, nor are kernels whose weights do not fit signed bytes.
    """
    *taps, depth, columns = kernel.shape
    if depth == 1 or _excess(kernel).any():
        return kernel, window
    for count in range(1, min(window.groups, MOST_JOINED) + 1):
        groups, rest = divmod(window.groups, count)
        if rest or not _fills(count * depth, columns // groups, groups):
            continue
        parts = kernel.reshape(*taps, depth, groups, count, columns // window.groups)
        wide = np.zeros((*taps, count, depth, *parts.shape[-3:]), kernel.dtype)
        for at in range(count):
            wide[..., at, :, :, at, :] = parts[..., at, :]
        return wide.reshape(*taps, count * depth, columns), replace(window, groups=groups)
    return kernel, window


def is_words(data: Any) -> bool:
    """Whether the data is multiplied as 16-bit integers because it comes so."""
    return str(data.ty.dtype) == "int16"


def _way(kernel: np.ndarray, window: Window, words: bool) -> Any:
    """The function that computes a convolution fastest. kernel: [taps, in of a group, out]."""
    if _fills_vectors(kernel, window.groups):
        return known_sums
    *taps, depth, columns = kernel.shape
    if words or depth > 1 or columns > window.groups or _excess(kernel).any():
        return _grouped
    if current_is_signed():
        return _by_taps if columns % VECTOR == 0 else _grouped
    # Of more than one vector, the last may lack some lanes.
    lines = taps[0] > 1 and columns >= VECTOR and current_has_dot()
    return _by_lines if lines else _grouped


def _fills_vectors(kernel: np.ndarray, groups: int) -> bool:
    """Whether dot products have all steps in each group, full vectors and weights that fit."""
    *_, depth, columns = kernel.shape
    whole = _fills(depth, columns // groups, groups)
    return whole and (groups == 1 or not _excess(kernel).any())


def _fills(depth: int, columns: int, groups: int) -> bool:
    """Whether groups have a multiple of the steps of a dot product, and fill vectors of results.

    On x86 more than one vector need not be whole: the rest takes some lanes of another one.
    """
    if groups == 1:
        return True
    lanes, steps = (HALF_VECTOR, PAIR) if current_widens() else (VECTOR, STEPS)
    partly = columns > lanes and (current_widens() or current_has_dot())
    return depth % steps == 0 and (columns % lanes == 0 or partly)


@dataclass(frozen=True)
class Window:
    """Where a convolution reads, an entry for each axis; empty for a matrix product."""

    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    groups: int = 1

    @classmethod
    def of(cls, call: Call, kernel: tuple[int, ...]) -> Window:
        """The window of a node whose kernel has this size."""
        one = (1,) * len(kernel)
        strides, dilations = (
            tuple(call.attribute(name) or one) for name in ("strides", "dilations")
        )
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        pads = _pads(call, spans, strides)
        half = len(kernel)
        return cls(strides, dilations, pads[:half], pads[half:], call.attribute("group", 1))

    def results(self, sizes: Any, taps: list[int]) -> list[int]:
        """The number of results along each axis of padded data."""
        axes = zip(sizes, taps, self.dilations, self.strides, strict=True)
        return [(int(size) - (tap - 1) * d - 1) // s + 1 for size, tap, d, s in axes]

    def at(self, place: tuple[Any, ...], tap: list[Any]) -> list[Any]:
        """The place in the padded data of a tap of a result."""
        axes = zip(place, tap, self.strides, self.dilations, strict=True)
        return [p * s + t * d for p, t, s, d in axes]


def _pads(call: Call, spans: list[int], strides: tuple[int, ...]) -> tuple[int, ...]:
    how = call.attribute("auto_pad", "NOTSET")
    if how in ("NOTSET", "VALID"):
        return tuple(call.attribute("pads") or (0,) * 2 * len(spans))
    sizes = call.shape(0)[2:]
    totals = [
        max(0, (math.ceil(n / s) - 1) * s + span - n)
        for n, s, span in zip(sizes, strides, spans, strict=True)
    ]
    less, more = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return (*less, *more) if how == "SAME_UPPER" else (*more, *less)


def centred(call: Call, index: int, zero: int) -> np.ndarray | None:
    """A weight minus its zero points, one or one for each output channel; None if not constant."""
    weight, origin = call.value(index), call.value(zero)
    if weight is None or (origin is None and call.input(zero) is not None):
        return None
    wide = weight.astype(np.int32)
    if origin is None:
        return wide
    first = call.operator == "ConvInteger" and origin.size > 1
    return wide - origin.astype(np.int32).reshape(
        (-1, *[1] * (wide.ndim - 1)) if first else origin.shape if origin.size > 1 else ()
    )


def is_number(zero: Any) -> bool:
    """Whether a zero point is one for the whole tensor, or missing."""
    return zero is None or math.prod(int(extent) for extent in zero.ty.shape) == 1


def known_sums(call: Call, data: Any, zero: Any, weight: np.ndarray, window: Window) -> Any:
    """Sums over all taps and channels. data: [.., spatial, in]. weight: [taps, in, out]."""
    data, origin = as_multiplied(call, data, zero)
    excess = _excess(weight)
    low = weight - excess
    total = _centred_dot(call, data, origin, low, window)
    if not excess.any():
        return total
    rows = _row_sums(call, data, origin, low, window)
    scaled = call.emit(relax.op.multiply(rows, int32(excess)))
    return call.emit(relax.op.add(total, scaled))


def as_multiplied(call: Call, data: Any, zero: Any) -> tuple[Any, Any]:
    """Bytes in the signedness that the processor multiplies, and their zero point."""
    if current_widens() or is_words(data):
        return data, number(call, zero)
    return (signed if current_is_signed() else unsigned)(call, data, zero)


def _by_lines(call: Call, data: Any, zero: Any, weight: np.ndarray, window: Window) -> Any:
    """Sums over the taps of each channel, four lines of taps at once. weight: [taps, 1, out]."""
    data, origin = unsigned(call, data, zero)
    taps = weight[..., 0, :]
    missing = -taps.shape[0] % STEPS  # lines of zeros behind the last one
    filled = np.moveaxis(np.pad(taps, [(0, missing)] + [(0, 0)] * (taps.ndim - 1)), 0, -2)
    more = window.after[0] + missing * window.dilations[0]
    longer = replace(window, after=(more, *window.after[1:]))
    made = partial(of_lines, window=longer)
    total = computed(call, made, data, origin, filled.astype(np.int8))
    return _less(call, total, origin, taps.sum(tuple(range(taps.ndim - 1))))


def _by_taps(call: Call, data: Any, zero: Any, weight: np.ndarray, window: Window) -> Any:
    """Sums over the taps of each channel, of signed bytes as they are. weight: [taps, 1, out]."""
    data, origin = signed(call, data, zero)
    made = partial(multiplied, window=window, given="int8")
    total = computed(call, made, data, origin, weight.astype(np.int8))
    return _less(call, total, origin, weight.sum(tuple(range(weight.ndim - 1))))


def _excess(weight: np.ndarray) -> np.ndarray:
    """The part of each column's weights that does not fit a signed byte; row sums add it.

    -128 does not fit either where two products by signed bytes have to fit 16 bits.
    """
    taps, least = tuple(range(weight.ndim - 1)), -127 if current_is_signed() else -128
    above, below = weight.max(taps) - 127, weight.min(taps) - least
    return np.maximum(above, 0) + np.minimum(below, 0)


def _centred_dot(call: Call, data: Any, zero: Any, weight: np.ndarray, window: Window) -> Any:
    """Sums of bytes minus their zero point, with channels padded to whole groups of four."""
    widened = current_widens() and not is_words(data)
    given = "int16" if widened else str(data.ty.dtype)
    if widened and _has_short_pixels(weight, window):
        *_, width, _, outputs = weight.shape
        line = weight.reshape(*weight.shape[:-3], -1, outputs)  # a line of taps is one run
        filled, made = _filled(line, PAIR), partial(of_runs, window=window, width=width)
    else:
        filled = _filled(weight, STEPS) if window.groups == 1 else weight
        made = partial(multiplied, window=window, given=given)
    total = computed(call, made, data, zero, filled.astype(np.int8))
    columns = weight.sum(tuple(range(weight.ndim - 1)))
    return total if widened else _less(call, total, zero, columns)


def _filled(weight: np.ndarray, steps: int) -> np.ndarray:
    """The weight with zeros on its last axis but one, up to a multiple of these steps."""
    missing = -weight.shape[-2] % steps
    return np.pad(weight, [(0, 0)] * (weight.ndim - 2) + [(0, missing), (0, 0)])


def _has_short_pixels(weight: np.ndarray, window: Window) -> bool:
    """Whether lines of taps are contiguous and have fewer steps than pixels padded to four."""
    if not window.strides or window.groups > 1 or window.dilations[-1] > 1:
        return False
    *_, taps, depth, _ = weight.shape
    return bool(depth < STEPS and taps > 1)


def _row_sums(call: Call, data: Any, zero: Any, weight: np.ndarray, window: Window) -> Any:
    """For each row of the result, the sum of its inputs minus their zero point; one column."""
    if window.strides:
        return _centred_dot(call, data, zero, np.ones((*weight.shape[:-1], 1), np.int64), window)
    wide = call.emit(relax.op.astype(data, "int32"))
    total = call.emit(relax.op.sum(wide, -1, keepdims=True))
    return _less(call, total, zero, weight[..., 0].size)


def _less(call: Call, total: Any, zero: Any, sums: Any) -> Any:
    """Sums without what the zero point added. sums: of the weights of each column."""
    if isinstance(zero, int):
        return call.emit(relax.op.subtract(total, int32(zero * sums))) if zero else total
    if isinstance(zero, tvm.ir.GenericConst):
        return call.emit(relax.op.subtract(total, int32(zero.value.numpy() * sums)))
    added = call.emit(relax.op.multiply(zero, int32(sums)))
    return call.emit(relax.op.subtract(total, added))


def _grouped(call: Call, data: Any, zero: Any, weight: np.ndarray, window: Window) -> Any:
    """Sums over the taps and channels of each group, of data that is centred before."""
    dtype = _exactly(np.abs(weight).sum(tuple(range(weight.ndim - 1))).max(initial=0) * 255)
    dtype = "int32" if is_words(data) else dtype
    made = partial(multiplied, window=window, given=dtype)
    total = computed(call, made, data, number(call, zero), weight.astype(dtype))
    return call.emit(relax.op.astype(total, "int32"))


def _exactly(bound: int) -> str:
    """The type in which sums up to this bound are exact: float32 if possible, as it is faster."""
    return "float32" if bound <= _EXACT else "int32"


def computed(call: Call, function: Any, data: Any, zero: Any, weight: np.ndarray) -> Any:
    """A function of data, zero point and weights as a kernel of its own."""
    kernel = call.bb.call_te(
        function, data, zero, constant(weight), primfunc_name_hint=call.operator
    )
    return call.emit(kernel)


def _any_conv(call: Call) -> Any:
    """A convolution whose weights are known only in a run."""
    spatial = [1] * (len(call.shape(0)) - 2)
    left = real(call, 0, 2, [])
    right = real(call, 1, 3, [-1, 1, *spatial])
    taps = math.prod(call.shape(1)[1:])
    window = Window.of(call, call.shape(1)[2:])
    return as_whole(call, taps, left, right, partial(_convolved, window=window))


def _convolved(left: Any, right: Any, window: Window) -> Any:
    convolution = getattr(relax.op.nn, f"conv{len(window.strides)}d")
    return convolution(
        left,
        right,
        strides=list(window.strides),
        padding=[*window.before, *window.after],
        dilation=list(window.dilations),
        groups=window.groups,
    )


def real(call: Call, index: int, zero: int, shape: list[int] | None) -> Any:
    """An input minus its zero point, as int32. shape: of a zero point that is no scalar."""
    wide, origin = call.emit(relax.op.astype(call.inputs[index], "int32")), call.input(zero)
    if origin is None:
        return wide
    if is_number(origin):
        origin = call.emit(relax.op.reshape(origin, ()))
    elif shape:
        origin = call.emit(relax.op.reshape(origin, shape))
    return call.emit(relax.op.subtract(wide, call.emit(relax.op.astype(origin, "int32"))))


def as_whole(call: Call, count: int, left: Any, right: Any, multiply: Any) -> Any:
    """A product of integers, each at most 255 from zero, in a type in which it is exact."""
    dtype = _exactly(count * 255 * 255)
    given = [call.emit(relax.op.astype(one, dtype)) for one in (left, right)]
    return relax.op.astype(call.emit(multiply(*given)), "int32")


OPERATORS = (Operator("ConvInteger", since=10, types=INTEGERS, convert=conv_integer),)
