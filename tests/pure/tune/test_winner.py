"""Who wins when times were taken in turns."""

import random

from ansor_deploy.tune.trial import winner

TURNS = 9


def times(mean, noise=0.0, seed=0):
    rng = random.Random(seed)
    return [mean * (1 + rng.uniform(-noise, noise)) for _ in range(TURNS)]


def test_the_incumbent_stands_in_a_tie():
    assert winner([times(1.0), times(1.0)]) == 0
    assert winner([times(1.0), times(0.995)]) == 0


def test_a_surely_faster_challenger_wins():
    assert winner([times(1.0), times(0.95), times(0.9)]) == 2


def test_a_difference_within_the_noise_changes_nothing():
    stood = [winner([times(1.0, 0.1, 2 * n), times(1.0, 0.1, 2 * n + 1)]) for n in range(200)]
    assert stood.count(0) >= 190


def test_what_slows_down_both_decides_nothing():
    incumbent = [1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0]
    assert winner([incumbent, [0.98 * one for one in incumbent]]) == 1
    assert winner([incumbent, [1.02 * one for one in incumbent]]) == 0


def test_a_single_lucky_turn_does_not_win():
    lucky = times(1.0)
    lucky[0] = 0.1
    assert winner([times(1.0), lucky]) == 0


def test_what_failed_cannot_win():
    assert winner([times(1.0), []]) == 0
    assert winner([[], times(2.0), times(3.0)]) == 1
    assert winner([[], []]) == 0
