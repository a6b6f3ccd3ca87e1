"""Activation functions of recurrent layers as scalar expressions in TIR."""

from collections.abc import Callable
from typing import Any

from ..._lazy_tvm import tirx

Activation = Callable[[Any, float, float], Any]


def number(value: float) -> Any:
    """A float32 in TIR."""
    return tirx.FloatImm("float32", value)


def _softplus(x: Any) -> Any:
    """log(1 + e**x), which is x + log(1 + e**-x)."""
    return tirx.max(x, number(0)) + tirx.log(number(1) + tirx.exp(-tirx.abs(x)))


def _elu(x: Any, alpha: float) -> Any:
    return tirx.Select(x < number(0), number(alpha) * (tirx.exp(x) - number(1)), x)


def _hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    line = number(alpha) * x + number(beta)
    return tirx.max(number(0), tirx.min(number(1), line))


# For each ONNX name in lower case: the defaults of alpha and beta, and the function of x, alpha and
# beta.
ACTIVATIONS: dict[str, tuple[float, float, Activation]] = {
    "relu": (0, 0, lambda x, _a, _b: tirx.max(x, number(0))),
    "tanh": (0, 0, lambda x, _a, _b: tirx.tanh(x)),
    "sigmoid": (0, 0, lambda x, _a, _b: tirx.sigmoid(x)),
    "softsign": (0, 0, lambda x, _a, _b: x / (number(1) + tirx.abs(x))),
    "softplus": (0, 0, lambda x, _a, _b: _softplus(x)),
    "affine": (1, 0, lambda x, a, b: number(a) * x + number(b)),
    "leakyrelu": (0.01, 0, lambda x, a, _b: tirx.Select(x < number(0), number(a) * x, x)),
    "thresholdedrelu": (1, 0, lambda x, a, _b: tirx.Select(x > number(a), x, number(0))),
    "scaledtanh": (1, 1, lambda x, a, b: number(a) * tirx.tanh(number(b) * x)),
    "hardsigmoid": (0.2, 0.5, _hard_sigmoid),
    "elu": (1, 0, lambda x, a, _b: _elu(x, a)),
}
TAKE_ALPHA = {name for name, (alpha, _, _) in ACTIVATIONS.items() if alpha}
TAKE_BETA = {"affine", "scaledtanh", "hardsigmoid"}
