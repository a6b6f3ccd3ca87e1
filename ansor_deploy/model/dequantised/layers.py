"""Convolutions and products of tensors that stand for bytes: integer sums of bytes.

Activations may be 16-bit integers, if their products with all weights have sums that fit 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ..operators.emitter import Emitter
from ..operators.quantization import INT32, Range
from .real import Real, Sum

_SUMS = Range.of(INT32)
_WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
# For two operands, the integer sums of their products; None if there are no such sums.
_Total = Callable[[Emitter, Real, Real], str | None]


def layer(emit: Emitter, reals: Mapping[str, Real]) -> Sum | None:
    """The sums of a Conv, MatMul or Gemm of bytes; None for any other node or operands."""
    op = emit.node.op_type
    if op not in _TOTALS or emit.node.domain not in ("", "ai.onnx"):
        return None
    if (operands := _operands(emit, reals)) is None:
        return None
    x, w = operands
    with np.errstate(over="ignore"):
        scale = x.scale * w.scale * np.float32(emit.attribute("alpha", 1.0) if op == "Gemm" else 1)
    if not np.isfinite(scale).all():  # zero times it would be NaN
        return None
    column = (-1, *[1] * (len(emit.shape(emit.input(1))) - 2))
    if op != "Conv":
        column = (-1,) if x.is_whole else (-1, 1)
    if (found := _TOTALS[op](emit, x, w)) is None:
        return None
    sums = Sum(found, _column(scale, column))
    # Beside sums of 16-bit integers there may be no room for a bias.
    return _with_bias(emit, sums, column, reals.get(emit.input(2)) if x.is_bytes else None)


def _operands(emit: Emitter, reals: Mapping[str, Real]) -> tuple[Real, Real] | None:
    """What a node multiplies, if integers are multiplied."""
    x, w = (reals.get(emit.input(at)) for at in (0, 1))
    if x is None or w is None:
        return None
    x, w = _with_whole(emit, x, w)
    if not (w.is_bytes and (x.is_whole or w.is_whole or _is_deep(emit))):
        return None
    return (x, w) if x.is_bytes or (x.is_words and _have_room(emit, x, w)) else None


def _with_whole(emit: Emitter, x: Real, w: Real) -> tuple[Real, Real]:
    """The operands, with one scale for all activations of a depthwise convolution.

    A channel's scale becomes part of that of its filters, which meet no other channel. Where zero
    points differ as well, each channel keeps its own.
    """
    if x.is_whole or not _is_deep(emit) or x.axis != 1 or not _is_by_output(w, 0):
        return x, w
    channels, filters = emit.shape(emit.input(0))[1], emit.shape(emit.input(1))[0]
    by_channel, zero = np.broadcast_to(x.scale, channels), np.unique(x.zero)
    with np.errstate(over="ignore"):
        scale = np.repeat(by_channel, filters // channels) * w.scale.reshape(-1)
    zero = zero.reshape(()) if zero.size == 1 else np.broadcast_to(x.zero, channels)
    return replace(x, scale=np.ones((), np.float32), zero=zero), replace(w, scale=scale, axis=0)


def _is_deep(emit: Emitter) -> bool:
    """Whether it is a convolution in which no channel meets another one."""
    return emit.node.op_type == "Conv" and emit.shape(emit.input(1))[1] == 1


def _have_room(emit: Emitter, x: Real, w: Real) -> bool:
    """Whether 32 bits hold all sums of 16-bit integers times weights.

    What a column's weights have beyond a signed byte is multiplied by the sums of rows.
    """
    known = emit.graph.value(w.data)
    if known is None or not x.is_whole or x.data in emit.graph.constants:
        return False
    weight = known.astype(np.int64) - w.along(w.zero, known.ndim)
    turned = emit.node.op_type == "Conv" or emit.attribute("transB", 0)
    column = 0 if turned else known.ndim - 1
    ends, zero = Range.of(x.kind), x.zero.item()
    most = max(zero - ends.low, ends.high - zero)
    columns = known.shape[column] if known.ndim > 1 else 1
    size = np.abs(np.moveaxis(weight, column, 0).reshape(columns, -1))
    beyond = np.maximum(size.max(1, initial=0) - 127, 0)
    added = size.sum(1) + 2 * beyond * size.shape[1]
    return int(added.max(initial=0)) * most <= _SUMS.high


def _convolution(emit: Emitter, x: Real, w: Real) -> str | None:
    if x.scale.size > 1 or (x.zero.size > 1 and not (x.is_bytes and _is_deep(emit))):
        return None
    if not _is_by_output(w, 0) or w.data not in emit.graph.constants:
        return None
    window = {name: emit.attribute(name) for name in _WINDOW}
    return emit("ConvInteger", x.data, w.data, *_zeros(emit, x, w), **window)


def _product(emit: Emitter, x: Real, w: Real) -> str | None:
    if not x.is_whole:
        return _of_weight_and(emit, x, w)
    known = w.data in emit.graph.constants and w.axis == 1
    if not w.is_whole and not (known and len(emit.shape(emit.input(1))) == 2):
        return None
    return emit("MatMulInteger", x.data, w.data, *_zeros(emit, x, w))


def _of_weight_and(emit: Emitter, weight: Real, x: Real) -> str | None:
    """A product by a weight with a scale for each of its rows: the transposed product."""
    known, rank = emit.graph.value(weight.data), len(emit.shape(emit.input(1)))
    if known is None or known.ndim != 2 or weight.axis or not x.is_whole or rank < 2:
        return None
    perm = [*range(rank - 2), rank - 1, rank - 2]
    given = emit("Transpose", x.data, perm=perm), emit.constant(known.T, weight.kind)
    total = emit("MatMulInteger", *given, *_zeros(emit, x, weight))
    return emit("Transpose", total, perm=perm)


def _gemm(emit: Emitter, x: Real, w: Real) -> str | None:
    turned = emit.attribute("transB", 0)
    if not x.is_whole or not _is_by_output(w, 0 if turned else 1):
        return None
    names = [x.data, w.data]
    for at, flag in enumerate(("transA", "transB")):
        if emit.attribute(flag, 0):
            names[at] = emit("Transpose", names[at], perm=[1, 0])
    return emit("MatMulInteger", *names, *_zeros(emit, x, w))


def _zeros(emit: Emitter, *operands: Real) -> list[str]:
    return [one.constants(emit)[1] for one in operands]


def _is_by_output(weight: Real, axis: int) -> bool:
    return weight.is_whole or weight.axis == axis


def _column(scale: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return scale.reshape(() if scale.size == 1 else shape)


def _with_bias(emit: Emitter, found: Sum, column: tuple[int, ...], bias: Real | None) -> Sum:
    """The sums plus the node's third input, as integers of their scale or as float32."""
    name = emit.input(2)
    times = np.float32(emit.attribute("beta", 1.0) if emit.node.op_type == "Gemm" else 1)
    if not name or not times:
        return found
    if bias is not None and _adds_to(bias.scale * times, bias, found):
        total = emit("Add", found.total, _shaped(emit, bias.data, name, column))
        return Sum(total, found.scale)
    added = name if times == 1 else emit("Mul", name, emit.constant(times))
    return Sum(found.total, found.scale, _shaped(emit, added, name, column))


def _adds_to(scale: np.ndarray, bias: Real, sums: Sum) -> bool:
    """Whether the integers of a bias with this scale have the scale of the sums."""
    whole = bias.kind == INT32 and not bias.zero.any()
    scales = (one.reshape(-1) for one in (sums.scale, scale))
    return whole and np.allclose(*scales, rtol=1e-5, atol=0)


def _shaped(emit: Emitter, name: str, like: str, shape: tuple[int, ...]) -> str:
    """A bias with one number for each column, shaped to broadcast. like: a tensor of its shape."""
    return emit.reshape(name, *shape) if len(emit.shape(like)) == 1 and len(shape) > 1 else name


_TOTALS: dict[str, _Total] = {"Conv": _convolution, "MatMul": _product, "Gemm": _gemm}
