"""Sums, norms, products and exponentials of constants, as in standardised and scaled weights.

The order in which a processor adds decides the last bits of a sum, and libraries differ in the last
bits of an exponential. These operators are computed in float64 and rounded once, so that the same
model gives the same bytes on every host. TVM would fold them, too, but it compiles a function for
each.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import NodeProto

from ..onnx.skeleton import attribute
from .graph import optional_input

# The most multiply-adds of a constant matrix product: these take about a second.
_MOST_PRODUCTS = 1 << 28

# Maps a node, its inputs (floats are float64) and the opset to the node's outputs, or to None for a
# form of the operator that is not folded.
Operator = Callable[[NodeProto, list[np.ndarray], int], "list[np.ndarray] | None"]


def evaluate(node: NodeProto, inputs: list[np.ndarray], opset: int) -> list[np.ndarray] | None:
    """The outputs of one of `OPERATORS`; None for a form of the operator that is not folded.

    inputs: all floats among them have one type, float32 or shorter, which the outputs get.
    ValueError or IndexError where the constants do not fit each other.
    """
    kind = next(one.dtype for one in inputs if _is_float(one))
    wide = [one.astype(np.float64) if one.dtype == kind else one for one in inputs]
    made = OPERATORS[node.op_type](node, wide, opset)
    return made and [one.astype(kind) if one.dtype == np.float64 else one for one in made]


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.name in ("float16", "bfloat16", "float32")


def _reduction(before: Callable[..., np.ndarray], after: Callable[..., np.ndarray]) -> Operator:
    """The reduction that sums up `before` of its input, then applies `after` to sum and count."""

    def reduce(node: NodeProto, inputs: list[np.ndarray], _opset: int) -> list[np.ndarray] | None:
        data = inputs[0]
        named = inputs[1].tolist() if optional_input(node, 1) else attribute(node, "axes", [])
        if not named and attribute(node, "noop_with_empty_axes", 0):
            return None
        axes = tuple(named) or tuple(range(data.ndim))
        total = before(data).sum(axes, keepdims=bool(attribute(node, "keepdims", 1)))
        count = math.prod(data.shape[axis] for axis in axes)
        return [np.asarray(after(total, count))]

    return reduce


def _batch_norm(node: NodeProto, inputs: list[np.ndarray], opset: int) -> list[np.ndarray] | None:
    if opset < 14 and (opset < 9 or any(node.output[1:])):
        return None  # these versions define training outputs otherwise
    data, scale, offset, mean, variance = inputs
    running: list[np.ndarray] = []
    if attribute(node, "training_mode", 0):
        axes = (0, *range(2, data.ndim))
        momentum, given = attribute(node, "momentum", 0.9), (mean, variance)
        mean, variance = data.mean(axes), data.var(axes)
        now = zip(given, (mean, variance), strict=True)
        running = [old * momentum + new * (1 - momentum) for old, new in now]
    by_channel = (-1, *(1,) * (data.ndim - 2))
    factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    centred = data - mean.reshape(by_channel)
    result = centred * factor.reshape(by_channel) + offset.reshape(by_channel)
    return [result, *running][: len(node.output)]


def _power(_node: NodeProto, inputs: list[np.ndarray], _opset: int) -> list[np.ndarray] | None:
    base, exponent = inputs
    known = _POWERS.get(float(exponent.item())) if exponent.size == 1 else None
    fits = base.dtype == np.float64 and exponent.ndim <= base.ndim
    return [known(base)] if known and fits else None


def _product(_node: NodeProto, inputs: list[np.ndarray], _opset: int) -> list[np.ndarray] | None:
    """Add term by term: fast matrix products add in another order on each processor."""
    left, right = inputs
    if min(left.ndim, right.ndim) < 2 or left.shape[-1] != right.shape[-2]:
        return None
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*batch, left.shape[-2], right.shape[-1])
    if math.prod(shape) * left.shape[-1] > _MOST_PRODUCTS:
        return None
    total = np.zeros(shape)
    for k in range(left.shape[-1]):
        total += left[..., :, k, None] * right[..., k, None, :]
    return [total]


def _quantize(node: NodeProto, inputs: list[np.ndarray], _opset: int) -> list[np.ndarray] | None:
    data, scale, *zero = inputs
    other = any(attribute(node, name, 0) for name in ("block_size", "output_dtype", "precision"))
    kind = zero[0].dtype if zero else np.dtype(np.uint8)
    if other or kind.kind not in "iu":
        return None
    # ONNX divides in float32, so the quotient is rounded to that first: this can make a tie.
    steps = np.rint((data / _along(node, data, scale)).astype(np.float32)).astype(np.float64)
    shifted = steps + (_along(node, data, zero[0]) if zero else 0)
    return [np.clip(shifted, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)]


def _along(node: NodeProto, data: np.ndarray, value: np.ndarray) -> np.ndarray:
    """A scale or zero point, single or one for each slice along the axis, shaped to broadcast."""
    if value.size == 1:
        return value.reshape(())
    shape = [1] * data.ndim
    shape[attribute(node, "axis", 1)] = value.size
    return value.reshape(shape)


def exponential(power: np.ndarray) -> np.ndarray:
    """The exponential, computed by sums and products only, which are the same on every processor.

    x = n ln 2 + r with |r| <= ln 2 / 2; the series of e^r up to the 13th term has an error of
    4e-18.
    """
    x = np.clip(power, -800, 800)
    n = np.rint(x * _LOG2_E)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    series = np.ones_like(r)
    for k in range(13, 0, -1):
        series = series * r / k + 1
    return np.ldexp(series, np.nan_to_num(n).astype(np.int64))


def _of_each(function: Callable[[np.ndarray], np.ndarray]) -> Operator:
    return lambda _node, inputs, _opset: [function(inputs[0])]


_LOG2_E = 1.4426950408889634
# ln 2 in two parts: the product of the first with an integer below 2**20 is exact.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_POWERS: dict[float, Callable[[np.ndarray], np.ndarray]] = {
    -1.0: lambda base: 1 / base,
    -0.5: lambda base: 1 / np.sqrt(base),
    0.5: np.sqrt,
    1.0: lambda base: base,
    2.0: lambda base: base * base,
    3.0: lambda base: base * base * base,
}
OPERATORS: dict[str, Operator] = {
    "BatchNormalization": _batch_norm,
    "Exp": _of_each(exponential),
    "MatMul": _product,
    "Pow": _power,
    "QuantizeLinear": _quantize,
    "ReduceL1": _reduction(np.abs, lambda total, _: total),
    "ReduceL2": _reduction(np.square, lambda total, _: np.sqrt(total)),
    "ReduceMean": _reduction(np.asarray, lambda total, count: total / count),
    "ReduceSum": _reduction(np.asarray, lambda total, _: total),
    "ReduceSumSquare": _reduction(np.square, lambda total, _: total),
    "Sigmoid": _of_each(lambda x: 1 / (1 + exponential(-x))),
}
