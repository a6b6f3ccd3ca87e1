"""When an output of a library equals the oracle's.

Tolerance, by the output's dtype; an element is right if |a - e| <= atol x scale + rtol x |e|,
where scale is the largest finite |e| of that output, so that cancellation near zero is judged
by the magnitudes it came from:

    float64            atol 1e-9   rtol 1e-7
    float32            atol 1e-4   rtol 1e-3
    float16, bfloat16  atol 1e-2   rtol 1e-2
    int8, uint8        within 1 (a rounding step of a quantised value)
    other integers, bool, strings: equal

NaN must meet NaN, and an infinity the same infinity.
"""

import numpy as np

_FLOAT = {
    "float64": (1e-9, 1e-7),
    "float32": (1e-4, 1e-3),
    "float16": (1e-2, 1e-2),
    "bfloat16": (1e-2, 1e-2),
}
_STEP = ("int8", "uint8")


def compare(actual: np.ndarray, expected: np.ndarray) -> tuple[bool, float, float]:
    """(within tolerance, largest absolute error, largest error over the output's scale)."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False, float("inf"), float("inf")
    if expected.size == 0:
        return True, 0.0, 0.0
    if expected.dtype.name not in _FLOAT:
        return _compare_exact(actual, expected)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(e)
    same = bool(np.array_equal(a[~finite], e[~finite], equal_nan=True))
    if not same or not np.isfinite(a[finite]).all():
        return False, float("inf"), float("inf")
    error, magnitude = np.abs(a[finite] - e[finite]), np.abs(e[finite])
    if error.size == 0:
        return True, 0.0, 0.0
    atol, rtol = _FLOAT[expected.dtype.name]
    scale = float(magnitude.max()) or 1.0
    ok = bool((error <= atol * scale + rtol * magnitude).all())
    return ok, float(error.max()), float(error.max()) / scale


def _compare_exact(actual: np.ndarray, expected: np.ndarray) -> tuple[bool, float, float]:
    if not np.issubdtype(expected.dtype, np.integer):
        wrong = float((actual != expected).mean())
        return wrong == 0, wrong, wrong
    error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    # Not by the error alone: a float64 holds no integer beyond 2**53 exactly.
    step = expected.dtype.name in _STEP and error.max() <= 1
    scale = float(np.abs(expected.astype(np.float64)).max()) or 1.0
    ok = step or np.array_equal(actual, expected)
    return bool(ok), float(error.max()), float(error.max()) / scale
