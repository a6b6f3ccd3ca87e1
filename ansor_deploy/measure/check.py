"""When two outputs are equal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Bits of the significand, hidden one included, of the types that NumPy does not know.
_SIGNIFICANDS = {"bfloat16": 8, "float8_e4m3fn": 4, "float8_e5m2": 3}
# Half of an 8-bit float's values lie within this of each other: beyond it, nothing is checked.
_LOOSEST = 0.1


def compare(actual: np.ndarray, expected: np.ndarray, reduction: int) -> tuple[bool, float, float]:
    """Whether a tensor is what it should be: (ok, max_abs_err, max_rel_err).

    Integers and booleans must be equal. Of floats, NaN must stand where NaN is expected, and
    infinities where they are, with their sign. All others may differ by

        eps * (64 + 8 * sqrt(reduction)) * max|expected|        at most 0.1 * max|expected|

    eps: of the tensor's type (float32: 1.2e-7, so 3.1e-5 of the largest magnitude for sums of
    576). reduction: the longest sum behind an element. Schedules add in different orders, and
    the errors of a sum in random order grow with the square root of its length; 64 covers
    contracted multiply-adds and elementwise functions. The bound is relative to the largest
    magnitude because an element near zero may be a difference of large ones. max_rel_err is
    relative to it as well. A differing shape or type is infinitely wrong.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False, math.inf, math.inf
    if expected.size == 0:
        return True, 0.0, 0.0
    if expected.dtype == np.bool_:  # a byte that is neither 0 nor 1 was never written
        actual, expected = actual.view(np.uint8), expected.view(np.uint8)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    if np.issubdtype(expected.dtype, np.integer):
        errors = np.abs(a - e)
        return bool(np.array_equal(actual, expected)), *_maxima(errors, e)
    return _compare_floats(a, e, tolerance(expected.dtype, reduction))


def tolerance(dtype: Any, reduction: int) -> float:
    """The error that is allowed, as a part of the largest magnitude."""
    bits = _SIGNIFICANDS.get(str(dtype))
    eps = 2.0 ** (1 - bits) if bits else float(np.finfo(dtype).eps)
    return min(_LOOSEST, eps * (64 + 8 * math.sqrt(max(1, reduction))))


def _compare_floats(a: np.ndarray, e: np.ndarray, rtol: float) -> tuple[bool, float, float]:
    finite = np.isfinite(e)
    if not np.array_equal(a[~finite], e[~finite], equal_nan=True):
        return False, math.inf, math.inf
    a, e = a[finite], e[finite]
    if not np.isfinite(a).all():
        return False, math.inf, math.inf
    if a.size == 0:
        return True, 0.0, 0.0
    errors = np.abs(a - e)
    return bool(errors.max() <= rtol * np.abs(e).max()), *_maxima(errors, e)


def _maxima(errors: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    worst, largest = float(errors.max()), float(np.abs(expected).max())
    if worst == 0.0:
        return 0.0, 0.0
    return worst, worst / largest if largest else math.inf
