"""Decides whether an output of a candidate equals the expected one."""

import math
from typing import Any

import numpy as np

# Bits of the significand, including the hidden one, of types that NumPy does not know.
_SIGNIFICANDS = {"bfloat16": 8, "float8_e4m3fn": 4, "float8_e5m2": 3}
# Largest tolerance: half of an 8-bit float's values lie this close to each other, so that a larger
# one would check nothing.
_LOOSEST = 0.1
_PIECE = 1 << 14  # elements that are compared at a time, so that they stay in the cache


class Expected:
    """A tensor that others should equal; everything that comparing needs is computed once.

    Integers and booleans must be equal. NaN must be where NaN is expected, and infinities where
    infinities of the same sign are. All other floats may differ by

        eps * (64 + 8 * sqrt(reduction)) * max|expected|        at most 0.1 * max|expected|

    eps: of the tensor's type (float32: 1.2e-7, so 3.1e-5 of the largest magnitude for sums of
    576). reduction: the longest sum behind an element. Schedules add in different orders, and
    the errors of a sum in random order grow with the square root of its length; 64 covers
    contracted multiply-adds and elementwise functions. The bound is relative to the largest
    magnitude because an element near zero may be a difference of large ones.
    """

    def __init__(self, array: np.ndarray, reduction: int) -> None:
        self._array = array
        values = _bytes_of_bools(array).reshape(-1).astype(np.float64)
        self._finite = np.isfinite(values)
        self._whole = bool(self._finite.all())
        self._odd = values[~self._finite]
        self._values = values if self._whole else values[self._finite]
        self._largest = float(np.abs(self._values).max(initial=0.0))
        self._exact = array.dtype == np.bool_ or np.issubdtype(array.dtype, np.integer)
        self._rtol = 0.0 if self._exact else tolerance(array.dtype, reduction)

    def compare(self, actual: np.ndarray) -> tuple[bool, float, float]:
        """(ok, max_abs_err, max_rel_err), the latter relative to the largest magnitude.

        A differing shape or type is infinitely wrong.
        """
        if actual.shape != self._array.shape or actual.dtype != self._array.dtype:
            return False, math.inf, math.inf
        values = _bytes_of_bools(actual).reshape(-1)
        if not self._whole:
            odd = values[~self._finite].astype(np.float64)
            if not np.array_equal(odd, self._odd, equal_nan=True):
                return False, math.inf, math.inf
            values = values[self._finite]
        worst = _largest_difference(values, self._values)
        if not math.isfinite(worst):
            return False, math.inf, math.inf
        same = not self._exact or np.array_equal(values, _bytes_of_bools(self._array).reshape(-1))
        return same and worst <= self._rtol * self._largest, worst, self._relative(worst)

    def _relative(self, worst: float) -> float:
        if worst == 0.0:
            return 0.0
        return worst / self._largest if self._largest else math.inf


def tolerance(dtype: Any, reduction: int) -> float:
    """The error that is allowed, as a share of the largest magnitude."""
    bits = _SIGNIFICANDS.get(str(dtype))
    eps = 2.0 ** (1 - bits) if bits else float(np.finfo(dtype).eps)
    return min(_LOOSEST, eps * (64 + 8 * math.sqrt(max(1, reduction))))


def _bytes_of_bools(array: np.ndarray) -> np.ndarray:
    """Booleans as bytes, since a byte other than 0 and 1 was never written."""
    return array.view(np.uint8) if array.dtype == np.bool_ else array


def _largest_difference(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of two flat arrays; not finite if an element is not."""
    worst = 0.0
    for start in range(0, actual.size, _PIECE):
        piece = actual[start : start + _PIECE].astype(np.float64)
        piece -= expected[start : start + _PIECE]
        largest = float(np.abs(piece, out=piece).max())
        if not math.isfinite(largest):
            return largest
        worst = max(worst, largest)
    return worst
