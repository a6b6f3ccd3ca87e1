"""Quotients that are rounded to steps: a product and a sum instead of a division.

    nearest(x / scale)   -->   nearest(fma(x, r, x * rest))          r + rest = 1 / scale

r is the reciprocal as a float32, rounded down, and rest what r lacks of it, so that the sum is off
by little more than its own rounding (Brisebarre, Muller and Raina, 2004). Dividing a vector takes
five times as long. What is rounded to steps need not be the same float, only the same step. Both
sides grow with x. So they make the same steps of all x if they do so beside each place where one
step ends and the next begins; these are tried when the code is made. Infinities stay, since neither
r nor rest is negative, and so does NaN.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ..._tvm import has_features, tirx
from .edge_values import is_arm
from .vector_math import Expr, has_reciprocal, shared

# How far the zero point may move the steps, if it is known only in a run.
_BYTE = 255
# So many floats on either side of the end of a step are tried; both quotients are nearer to it.
_BESIDE = 4
_FMA = "llvm.fma"


def adds_products(target: Any) -> bool:
    """Whether a TVM target multiplies and adds floats with one rounding, by one instruction."""
    if target is None or target.kind.name != "llvm":
        return False
    return is_arm(target) or has_features(str(target), ("fma",))


def in_steps(value: Expr, low: int, high: int) -> Expr:
    """A value that has the same nearest integer, if that lies between these ends.

    It is a quotient by a constant without its division where that gives the same steps; else the
    value itself.
    """
    if not isinstance(value, tirx.Div) or not has_reciprocal(value.b):
        return value
    parts = _parts(np.float32(value.b.value), low - _BYTE, high + _BYTE)
    if parts is None:
        return value
    reciprocal, rest = (tirx.const(float(one), "float32") for one in parts)

    def added(x: Expr) -> Expr:
        return tirx.call_llvm_pure_intrin("float32", _FMA, x, reciprocal, x * rest)

    return shared(value.a, added)


@lru_cache(maxsize=256)
def _parts(scale: np.float32, low: int, high: int) -> tuple[np.float32, np.float32] | None:
    """A scale's reciprocal and the rest; None where they make other steps than a division."""
    if scale <= 0:
        return None
    exact = 1 / Fraction(float(scale))
    reciprocal = np.float32(float(exact))
    if Fraction(float(reciprocal)) > exact:
        reciprocal = np.nextafter(reciprocal, np.float32(0))
    rest = np.float32(float(exact - Fraction(float(reciprocal))))
    x = _near_ends(scale, low, high)
    # A float64 holds the product and the sum, so that the float32 is rounded once.
    total = np.float64(x) * np.float64(reciprocal) + np.float64(x * rest)
    same = np.rint(total.astype(np.float32)) == np.rint(x / scale)
    return (reciprocal, rest) if rest > 0 and same.all() else None


def _near_ends(scale: np.float32, low: int, high: int) -> np.ndarray:
    """The floats nearest to where steps from `low` to `high` begin and end."""
    ends = ((np.arange(low, high + 1) + 0.5) * np.float64(scale)).astype(np.float32)
    bits = ends.view(np.int32)[:, None] + np.arange(-_BESIDE, _BESIDE + 1, dtype=np.int32)
    return bits.view(np.float32)
