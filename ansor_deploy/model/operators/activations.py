"""Activation functions as scalar expressions in TIR, which vectorise: no call of libm a lane.

exp is 2**n times a polynomial on half a binary order, as in Cephes (S. Moshier); its relative
error, and the absolute ones of what is made from it, are below 3e-7.
"""

from collections.abc import Callable
from typing import Any

from .lazy_tvm import tirx

Activation = Callable[[Any, float, float], Any]

_LOG2_E = 1.44269504088896341
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)
_TANH = (-5.70498872745e-3, 2.06390888e-2, -5.37397155e-2, 1.33314422036e-1, -3.33332819422e-1)
_LARGEST = 88.0  # beyond it the exponent field of a float32 overflows


def _number(value: float) -> Any:
    return tirx.FloatImm("float32", value)


def _horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    total = _number(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + _number(coefficient)
    return total


def exp(x: Any) -> Any:
    """e**x, for x beyond +-88 that of +-88."""
    x = tirx.max(tirx.min(x, _number(_LARGEST)), _number(-_LARGEST + 1))
    n = tirx.floor(x * _number(_LOG2_E) + _number(0.5))
    r = x - n * _number(_LN2_HIGH) - n * _number(_LN2_LOW)
    mantissa = _horner(r, _EXP) * r * r + r + _number(1)
    exponent = tirx.Cast("int32", n) + tirx.IntImm("int32", 127)
    return mantissa * tirx.reinterpret("float32", exponent << tirx.IntImm("int32", 23))


def sigmoid(x: Any) -> Any:
    """1 / (1 + e**-x)."""
    return _number(1) / (_number(1) + exp(-x))


def tanh(x: Any) -> Any:
    """An odd polynomial near zero, where the quotient of exponentials cancels."""
    size = tirx.abs(x)
    small = _horner(x * x, _TANH) * x * x * x + x
    quotient = _number(1) - _number(2) / (exp(size + size) + _number(1))
    large = tirx.Select(x < _number(0), -quotient, quotient)
    return tirx.Select(size < _number(0.625), small, large)


def _softplus(x: Any) -> Any:
    """log(1 + e**x), which is x + log(1 + e**-x)."""
    return tirx.max(x, _number(0)) + tirx.log(_number(1) + exp(-tirx.abs(x)))


def _elu(x: Any, alpha: float) -> Any:
    return tirx.Select(x < _number(0), _number(alpha) * (exp(x) - _number(1)), x)


def _hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    line = _number(alpha) * x + _number(beta)
    return tirx.max(_number(0), tirx.min(_number(1), line))


# By ONNX's name in lower case: alpha and beta by default, and the function of x, alpha and beta.
ACTIVATIONS: dict[str, tuple[float, float, Activation]] = {
    "relu": (0, 0, lambda x, _a, _b: tirx.max(x, _number(0))),
    "tanh": (0, 0, lambda x, _a, _b: tanh(x)),
    "sigmoid": (0, 0, lambda x, _a, _b: sigmoid(x)),
    "softsign": (0, 0, lambda x, _a, _b: x / (_number(1) + tirx.abs(x))),
    "softplus": (0, 0, lambda x, _a, _b: _softplus(x)),
    "affine": (1, 0, lambda x, a, b: _number(a) * x + _number(b)),
    "leakyrelu": (0.01, 0, lambda x, a, _b: tirx.Select(x < _number(0), _number(a) * x, x)),
    "thresholdedrelu": (1, 0, lambda x, a, _b: tirx.Select(x > _number(a), x, _number(0))),
    "scaledtanh": (1, 1, lambda x, a, b: _number(a) * tanh(_number(b) * x)),
    "hardsigmoid": (0.2, 0.5, _hard_sigmoid),
    "elu": (1, 0, lambda x, a, _b: _elu(x, a)),
}
TAKE_ALPHA = {name for name, (alpha, _, _) in ACTIVATIONS.items() if alpha}
TAKE_BETA = {"affine", "scaledtanh", "hardsigmoid"}
