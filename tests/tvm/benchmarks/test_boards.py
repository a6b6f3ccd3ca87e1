"""The arithmetic of the benchmark of several boards, on numbers that are known."""

import pytest

from benchmarks.machine import boards

RUNS = [
    boards.Run(1, 32, 64.0, 0),
    boards.Run(4, 32, 40.0, 0),
    boards.Run(1, 32, 32.0, 1),
    boards.Run(4, 32, 20.0, 0),
    boards.Run(1, 32, 320.0, 4),
    boards.Run(4, 32, 10.0, 0),
]


def test_the_ratio_is_that_of_the_medians():
    assert boards.ratio(RUNS) == pytest.approx((32 / 20) / (32 / 64))


def test_the_range_is_that_of_the_rounds():
    assert boards.span(RUNS) == pytest.approx((64 / 40, 32.0))


def test_the_file_has_every_run():
    found = boards.summary(RUNS, 0.25)
    assert found["build_seconds"] == 0.25
    assert found["range"] == boards.span(RUNS)
    assert [run["seconds"] for run in found["runs"]] == [64.0, 40.0, 32.0, 20.0, 320.0, 10.0]
