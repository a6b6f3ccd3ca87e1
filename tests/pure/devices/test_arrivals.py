"""Requests that come by themselves: when they come, and what is told of those that waited."""

from dataclasses import asdict, replace
from itertools import pairwise

import pytest

from ansor_deploy.cli.rates import Rated, rate_lines
from ansor_deploy.devices.answers import check_answer
from ansor_deploy.devices.arrivals import arrivals, summed_up
from ansor_deploy.system.untrusted import Refused


def test_they_come_at_the_rate_and_at_random():
    found = arrivals(100.0, 50.0)
    assert len(found) == pytest.approx(5000, abs=5 * 5000**0.5)
    gaps = [late - early for early, late in pairwise(found)]
    assert min(gaps) > 0
    # Independent ones: the gaps spread as much as they are long.
    mean = sum(gaps) / len(gaps)
    assert (sum(gap**2 for gap in gaps) / len(gaps) - mean**2) ** 0.5 == pytest.approx(
        mean, rel=0.1
    )
    assert arrivals(100.0, 50.0) == found
    assert len(arrivals(0.1, 1e-9)) == 1


def test_what_was_missed_waits_longer_than_all_else():
    served = summed_up([(n / 1e3, 2e-3) for n in range(90)], 100, 2.0)
    rated = Rated.of(served, 50.0, 2, 1)
    assert (rated.arrived, rated.missed, rated.per_second) == (100, 10, 45.0)
    assert (rated.waiting.p50_ms, rated.waiting.p90_ms) == pytest.approx((49, 89))
    assert (rated.total.p50_ms, rated.total.p90_ms) == pytest.approx((51, 91))
    assert rated.waiting.p99_ms is rated.total.p99_ms is None
    assert rated.running.p99_ms == pytest.approx(2)
    assert rate_lines(rated) == [
        "50 a second asked, 45 begun by 1 stream of 2 threads; 10 of 100 had not begun by the end",
        "arrival to answer: p50 51.0 ms, p90 91.0 ms, p99 missed",
        "waiting: p50 49.0 ms, p90 89.0 ms, p99 missed",
        "run: p50 2.00 ms, p90 2.00 ms, p99 2.00 ms",
    ]
    none = rate_lines(Rated.of(summed_up([(0.0, 1e-3)], 1, 2.0), 0.5, 1, 2))
    assert none[0] == "0.5 a second asked, 0.5 begun by 2 streams of 1 thread; none of 1 missed"


@pytest.mark.parametrize(
    "wrong", [{"begun": 0}, {"missed": 10**9}, {"running": [None] * 3}, {"waiting": [0.1] * 4}]
)
def test_a_board_may_answer_with_sums_alone(wrong):
    function = "ansor_deploy.devices.library_calls:serve"
    served = summed_up([(0.0, 1e-3)] * 3, 4, 2.0)
    check_answer(function, {}, asdict(served))
    with pytest.raises(Refused):
        check_answer(function, {}, asdict(replace(served, **wrong)))
