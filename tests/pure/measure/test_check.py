"""When outputs count as equal, and what an outcome says of itself."""

import math

import numpy as np
import pytest

from ansor_deploy.measure.check import Expected, tolerance
from ansor_deploy.measure.outcome import Outcome


def compare(actual, expected, reduction):
    return Expected(expected, reduction).compare(actual)


def floats(*values, dtype="float32"):
    return np.array(values, dtype)


def test_equal_tensors_have_no_error():
    assert compare(floats(1, -2), floats(1, -2), 1) == (True, 0.0, 0.0)
    assert compare(floats(), floats(), 1) == (True, 0.0, 0.0)


def test_the_error_is_relative_to_the_largest_magnitude():
    ok, worst, relative = compare(floats(0.0, 1000.001), floats(0.004, 1000.0), 1)
    assert ok
    assert worst == pytest.approx(0.004)
    assert relative == pytest.approx(4e-6)


@pytest.mark.parametrize(
    ("dtype", "reduction", "bound"),
    [
        ("float32", 1, 8.1e-6),
        ("float32", 576, 3.1e-5),
        ("float64", 1, 1.5e-14),
        ("float16", 9, 0.08),
    ],
)
def test_the_tolerance_grows_with_the_reduction_and_the_type(dtype, reduction, bound):
    assert tolerance(np.dtype(dtype), reduction) == pytest.approx(bound, rel=0.1)


def test_the_tolerance_decides():
    allowed = tolerance(np.dtype("float32"), 64)
    assert compare(floats(1 + 0.9 * allowed), floats(1), 64)[0]
    assert not compare(floats(1 + 1.1 * allowed), floats(1), 64)[0]
    assert tolerance(np.dtype("float16"), 10**6) == 0.1


def test_nan_and_infinity_must_stand_where_they_are_expected():
    expected = floats(math.nan, math.inf, -math.inf, 1)
    assert compare(expected.copy(), expected, 1) == (True, 0.0, 0.0)
    for at, value in ((0, 0), (1, -math.inf), (2, math.nan), (3, math.nan), (3, math.inf)):
        actual = expected.copy()
        actual[at] = value
        assert compare(actual, expected, 1) == (False, math.inf, math.inf)


def test_integers_are_exact():
    expected = np.array([1, 2**40], "int64")
    assert compare(expected.copy(), expected, 1) == (True, 0.0, 0.0)
    assert compare(expected + 1, expected, 10**6) == (False, 1.0, 1 / 2**40)


def test_an_unwritten_boolean_is_not_true():
    unwritten = np.array([0x7F, 1], "uint8").view(bool)
    assert not compare(unwritten, np.array([True, True]), 1)[0]
    assert compare(np.array([True, False]), np.array([True, False]), 1)[0]


def test_zeros_must_be_zeros():
    assert compare(floats(0, 1e-9), floats(0, 0), 1) == (False, pytest.approx(1e-9), math.inf)


def test_other_shapes_and_types_are_wrong():
    assert not compare(floats(1), floats(1, 1), 1)[0]
    assert not compare(floats(1, dtype="float64"), floats(1), 1)[0]


def test_a_latency_is_the_median_or_infinite():
    assert Outcome("[]", (3.0, 1.0, 2.0)).latency == 2.0
    assert Outcome("[]", (1.0,), error="timeout").latency == math.inf
    assert Outcome("[]").latency == math.inf
    assert repr(Outcome("[]", (0.002,))) == "Outcome(2 ms, 1 repeats)"
    assert repr(Outcome("[]", error="crash", message="SIGSEGV")) == "Outcome(crash: 'SIGSEGV')"
