"""Which of two libraries is shipped hangs on what is sure, and not on noise."""

import numpy as np
import pytest

from ansor_deploy.build import compare
from ansor_deploy.build.compare import LOOKS, Comparison, compare_speed, interval_of_median


class Library:
    """Takes `seconds` a run, with noise of its own, and whatever disturbs the machine."""

    def __init__(self, seconds, noise=0.0, seed=0, disturbed=lambda run: 1.0):
        self.seconds, self.noise, self.disturbed = seconds, noise, disturbed
        self.random, self.order = np.random.default_rng(seed), []

    def times(self, inputs, runs):
        self.order.append(runs)
        noise = self.random.normal(1, self.noise, runs).clip(0.5)
        return [float(self.seconds * one * self.disturbed(len(self.order))) for one in noise]


def compared(tuned, untuned, noise=0.0, seed=0, **how):
    pair = (Library(tuned, noise, 2 * seed, **how), Library(untuned, noise, 2 * seed + 1, **how))
    return compare_speed(*pair, [{}])


def test_what_is_clear_takes_the_fewest_pairs():
    faster, slower = compared(1e-3, 2e-3, 0.05), compared(2e-3, 1e-3, 0.05)
    assert (faster.faster, faster.slower, faster.pairs) == (True, False, LOOKS[0])
    assert (slower.faster, slower.slower, slower.pairs) == (False, True, LOOKS[0])
    assert faster.ratio == pytest.approx(0.5, rel=0.05)
    low, high = faster.interval
    assert low <= faster.ratio <= high < 1


def test_equal_libraries_are_seldom_taken_for_different_ones():
    found = [compared(10e-3, 10e-3, 0.1, seed) for seed in range(200)]
    assert sum(one.slower for one in found) <= 4
    assert sum(one.faster for one in found) <= 4
    assert all(one.pairs == LOOKS[-1] for one in found if not (one.slower or one.faster))


def test_a_small_difference_is_found_with_more_pairs():
    found = [compared(10.3e-3, 10e-3, 0.02, seed) for seed in range(20)]
    assert all(one.slower for one in found)
    assert max(one.pairs for one in found) > LOOKS[0]


def test_what_slows_down_both_decides_nothing():
    drift = compared(10e-3, 10e-3, 0.01, disturbed=lambda run: 1.0 if run < 20 else 3.0)
    assert (drift.faster, drift.slower) == (False, False)
    assert drift.ratio == pytest.approx(1.0, abs=0.02)


def test_a_run_that_was_disturbed_decides_nothing():
    spikes = compared(1e-3, 2e-3, 0.02, disturbed=lambda run: 50.0 if run == 3 else 1.0)
    assert spikes.faster


def test_both_run_in_turns_and_each_is_first_as_often():
    tuned, untuned = Library(10e-3), Library(10e-3)
    order = []
    for name, library in (("tuned", tuned), ("untuned", untuned)):
        library.disturbed = lambda run, name=name: order.append(name) or 1.0
    compare_speed(tuned, untuned, [{}])
    pairs = list(zip(order[2::2], order[3::2], strict=True))
    assert pairs.count(("tuned", "untuned")) == pairs.count(("untuned", "tuned")) == LOOKS[-1] / 2


def test_a_library_that_is_the_untuned_one_is_timed_by_itself():
    one = Library(10e-3)
    assert compare_speed(one, one, [{}]) == Comparison(10.0, 10.0)
    assert len(one.order) == 1 + LOOKS[0]


def test_of_several_shapes_the_times_are_sums():
    found = compare_speed(Library(1e-3), Library(2e-3), [{}, {}, {}])
    assert (found.tuned_ms, found.untuned_ms) == (pytest.approx(3.0), pytest.approx(6.0))
    assert found.ratio == pytest.approx(0.5)


def test_it_ends_with_its_time(monkeypatch):
    monkeypatch.setattr(compare, "MOST_SECONDS", 0.0)
    assert compared(10e-3, 10e-3, 0.1).pairs == LOOKS[0]


@pytest.mark.parametrize("count", LOOKS)
def test_the_interval_has_the_median_as_often_as_it_says(count):
    random = np.random.default_rng(count)
    samples = random.exponential(1.0, (4000, count))
    inside = [low <= np.log(2) <= high for low, high in map(interval_of_median, samples.tolist())]
    assert np.mean(inside) > 0.985


def test_too_few_values_have_no_interval():
    assert interval_of_median([1.0] * 7) is None
    assert interval_of_median([float(n) for n in range(8)]) == (0.0, 7.0)
