"""The arithmetic of the benchmark of several boards, on numbers that are known."""

import pytest

from benchmarks.machine import boards

SECONDS = [(64.0, 40.0), (32.0, 20.0), (320.0, 10.0)]
ROUNDS = [boards.Round(32, of, (0, 0)) for of in SECONDS]


def test_the_ratio_is_that_of_the_medians():
    assert boards.ratio(ROUNDS) == pytest.approx(64 / 20)


def test_the_range_is_that_of_the_rounds():
    assert boards.span(ROUNDS) == pytest.approx((64 / 40, 32.0))


def test_a_round_says_its_rates():
    assert str(ROUNDS[0]) == "trials/s: 0.500 and 0.800 (repeated: (0, 0))"
