"""Elementwise operators whose TVM converters prevent fusion or layout conversion, or copy data."""

from typing import Any

import numpy as np

from ..._lazy_tvm import relax
from .converting import Call
from .operator import Operator

# From this opset on, slopes broadcast like other operands, and not along the second axis.
_BROADCASTS = 7


def clip(call: Call) -> Any:
    """Clip with constant bounds by scalar operators: TVM makes two opaque calls."""
    low, high = _bounds(call)
    if np.isnan(low) or np.isnan(high):
        return call.by_tvm()
    if not call.dtype(0).startswith("float"):
        return _whole_clip(call)
    return relax.op.clip(call.inputs[0], low, high)


def _whole_clip(call: Call) -> Any:
    """Integers limited by integers, since floats do not hold all of them."""
    made = call.inputs[0]
    for index, held in ((1, relax.op.maximum), (2, relax.op.minimum)):
        if (bound := call.value(index)) is not None:
            made = call.emit(held(made, relax.const(bound.reshape(()), call.dtype(0))))
    return made


def _bounds(call: Call) -> tuple[float, float]:
    """The bounds as numbers; NaN if one is computed in the graph."""
    if call.opset < 11:
        return float(call.attribute("min", -np.inf)), float(call.attribute("max", np.inf))
    return _bound(call, 1, -np.inf), _bound(call, 2, np.inf)


def _bound(call: Call, index: int, absent: float) -> float:
    if call.input(index) is None:
        return absent
    value = call.value(index)
    return float("nan") if value is None else float(value.reshape(()))


def extremum(call: Call) -> Any:
    """Maximum or minimum pair by pair: TVM broadcasts, stacks and reduces, each through memory."""
    if all(call.value(index) is not None for index in range(len(call.inputs))):
        return call.by_tvm()
    converter = call.theirs
    # This is the form that TVM uses where no shape is known.
    return converter._impl_dynamic(call.bb, call.inputs)  # noqa: SLF001


def power(call: Call) -> Any:
    """Squares and cubes as products: a power calls a function for each element."""
    base, power = call.inputs[0], _scalar_exponent(call)
    if power not in (2.0, 3.0):
        return _any_power(call)
    square = relax.op.multiply(base, base)
    return square if power == 2.0 else relax.op.multiply(square, base)


def _any_power(call: Call) -> Any:
    """A power in the type of the base; integers are exact up to 2**53."""
    kind = call.dtype(0)
    if "float" in kind and kind == call.dtype(1):
        return call.by_tvm()
    wide = kind if "float" in kind else "float64"
    base, exponent = (relax.op.astype(call.bb.normalize(each), wide) for each in call.inputs)
    return relax.op.astype(call.emit(relax.op.power(base, exponent)), kind)


def _scalar_exponent(call: Call) -> float | None:
    """The constant exponent of floats if one serves all elements; else None."""
    value = call.value(1)
    if value is None or value.size != 1 or value.ndim > len(call.shape(0)):
        return None
    return float(value.reshape(())) if call.dtype(0).startswith("float") else None


def hard_swish(call: Call) -> Any:
    """HardSwish with a product by 1/6: TVM divides by 6, which takes as long as all the rest.

    The sum comes before a product, not after one, so that all processors round it alike.
    """
    data, kind = call.inputs[0], call.dtype(0)
    clipped = relax.op.clip(relax.op.add(data, relax.const(3, kind)), 0, 6)
    return relax.op.multiply(data, relax.op.multiply(clipped, relax.const(1 / 6, kind)))


def prelu(call: Call) -> Any:
    """Choose between a number and its product with a slope.

    TVM makes a call that supports only the graph's layout, is fused with nothing, and branches for
    each number.
    """
    if call.opset < _BROADCASTS:
        return call.by_tvm()
    data, slope = call.inputs
    below = call.emit(relax.op.less(data, relax.const(0, call.dtype(0))))
    return relax.op.where(below, call.emit(relax.op.multiply(data, slope)), data)


def sign(call: Call) -> Any:
    """-1, 0 or 1; NaN for NaN, where TVM gives 0."""
    data = call.inputs[0]
    made = call.emit(relax.op.sign(data))
    if "float" not in call.dtype(0):
        return made
    wide = call.emit(relax.op.astype(data, "float32")) if call.dtype(0) == "bfloat16" else data
    return relax.op.where(call.emit(relax.op.isnan(wide)), data, made)


def thresholded_relu(call: Call) -> Any:
    """Elements above the threshold, else 0; TVM multiplies by 0, which turns infinity into NaN."""
    data, kind = call.inputs[0], call.dtype(0)
    alpha = relax.const(call.attribute("alpha", 1.0), kind)
    return relax.op.where(call.emit(relax.op.greater(data, alpha)), data, relax.const(0, kind))


OPERATORS = (
    Operator("Clip", convert=clip),
    Operator("HardSwish", since=14, convert=hard_swish),
    Operator("Max", convert=extremum),
    Operator("Min", convert=extremum),
    Operator("PRelu", convert=prelu),
    Operator("Pow", convert=power),
    Operator("Sign", since=9, convert=sign),
    Operator("ThresholdedRelu", since=10, convert=thresholded_relu),
)
