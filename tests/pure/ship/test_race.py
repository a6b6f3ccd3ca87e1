"""What turns say for sure: how often that is wrong, and what it takes to find a difference."""

import itertools
import json
import math
import random
import time

import numpy as np
import pytest
from msgspec import convert, to_builtins

from ansor_deploy.ship.manifest import Race
from ansor_deploy.ship.race import race as module
from ansor_deploy.ship.race.race import LOOKS, Turn, in_shapes, judged, least_rank, race, race_of
from ansor_deploy.system.other_work import OtherWork

ERROR = 0.01  # of one look
FOREVER = math.inf


class Course:
    """Turns of two libraries on a machine with every vice.

    ratio: of our time to theirs. noise: of each turn. first: what coming first costs. drift: by
    which each turn is slower than the last. mood: how much of a turn's noise the next one keeps.
    tails: whether some turns are disturbed for a while.
    """

    def __init__(self, seed, ratio=1.0, noise=0.05, first=1.0, drift=0.0, mood=0.0, tails=False):
        self.random, self.ratio, self.noise = np.random.default_rng(seed), ratio, noise
        self.first, self.drift, self.mood, self.tails = first, drift, mood, tails
        self.count, self.last = 0, 0.0

    def take(self, ours_first):
        """What the copy that is loaded first takes is the machine's affair, whoever's it is."""
        self.count += 1
        draw = self.random.standard_t(2) if self.tails else self.random.standard_normal()
        self.last = self.mood * self.last + self.noise * draw
        of_first = math.exp(self.last) * self.first
        level = 1e-3 * (1 + self.drift) ** self.count
        ours, theirs = (of_first, 1.0) if ours_first else (1.0, of_first)
        return [Turn(level * self.ratio * ours, level * theirs, (1e-4,))]


def raced(seed, **how):
    random.seed(seed)
    return race("untuned", Course(seed, **how).take, FOREVER, LOOKS)


VICES = [
    {"noise": 0.3, "drift": 0.05},
    {"first": 0.9, "noise": 0.005},
    {"mood": 0.95},
    {"tails": True, "mood": 0.9, "first": 1.05},
]


@pytest.mark.parametrize("vices", VICES, ids=str)
def test_a_library_is_seldom_faster_or_slower_than_itself(vices):
    """Of 150 races that err once in two hundred times, five err once in a thousand such tests."""
    found = [raced(seed, **vices).verdict for seed in range(150)]
    assert found.count("faster") + found.count("slower") <= 4


def test_the_times_of_several_shapes_are_not_added_up():
    turns = [Turn(2.0, 4.0, (), (1.0, 4.0)) for _ in range(12)]  # means of two shapes
    found = judged("untuned", turns, ERROR)
    assert in_shapes(turns) == pytest.approx((0.5, 2.0))  # of the mean
    assert (found.ours_ms, found.theirs_ms) == pytest.approx((1e3, 2e3))


def test_a_race_can_be_read_in_the_time_of_another():
    found = judged("untuned", [Turn(1.0, 2.0)] * 12, ERROR).at(10.0)
    assert (found.ours_ms, found.theirs_ms, found.ratio) == (10.0, 20.0, 0.5)


def test_a_difference_is_found_the_sooner_the_larger_it_is():
    turns = {}
    for ratio in (0.97, 0.9):
        found = [raced(seed, ratio=ratio, noise=0.02) for seed in range(20)]
        assert sum(one.verdict == "faster" for one in found) >= 19
        assert all(one.interval[0] <= one.ratio <= one.interval[1] for one in found)
        turns[ratio] = sum(one.turns for one in found)
    assert turns[0.9] == 20 * LOOKS[0] < turns[0.97]


def test_the_interval_has_the_ratio_as_often_as_it_says():
    inside = 0
    for seed in range(150):
        low, high = raced(seed, ratio=1.05, noise=0.1).interval
        inside += low <= 1.05 <= high
    assert inside >= 145


def test_the_ratio_is_that_of_the_times():
    found = raced(3, ratio=1.3, noise=0.2, tails=True)
    assert found.ours_ms / found.theirs_ms == pytest.approx(found.ratio)


@pytest.mark.parametrize(
    ("ratio", "interval", "verdict"),
    [
        (0.9, (0.85, 0.95), "faster"),
        (1.1, (1.05, 1.2), "slower"),
        (0.995, (0.99, 0.999), "as fast"),  # by less than counts
        (1.0, (0.98, 1.02), "as fast"),
        (1.02, (1.01, 1.03), "slower"),
        (0.9, (0.8, 1.01), "cannot say"),
        (1.0, (0.9, 1.1), "cannot say"),
        (0.5, None, "cannot say"),
    ],
)
def test_the_verdict(ratio, interval, verdict):
    assert race_of("X", ratio, 1.0, ratio, interval, 10).verdict == verdict


def test_ranks_are_those_of_the_signed_rank_test():
    """Eight turns can be sure at 99%; for 12 and 20 its tables have 7 and 37, the ranks below."""
    assert [least_rank(n, ERROR) for n in (7, 8, 12, 20)] == [0, 1, 8, 38]
    first = [least_rank(turns, module.ERROR / len(LOOKS)) for turns in (LOOKS[0] - 1, LOOKS[0])]
    assert first == [0, 1]
    sums = [sum(some) for r in range(9) for some in itertools.combinations(range(1, 9), r)]
    rank = least_rank(8, 0.05)
    assert sum(one < rank for one in sums) * 2 <= 0.05 * 256 < sum(one <= rank for one in sums) * 2


def test_the_time_ends_a_race_with_one_look(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    course = Course(1, ratio=0.8, noise=0.01)

    def take(ours_first):
        clock[0] += 1.0
        return course.take(ours_first)

    found = race("X", take, 9.5)
    assert (found.turns, found.verdict) == (9, "faster")
    clock[0] = 0.0
    assert race("X", take, 0.0).turns == 1
    clock[0] = 0.0
    assert race("X", take, 0.0, LOOKS, LOOKS[0]).turns == LOOKS[0]


def test_too_few_turns_say_nothing():
    found = judged("X", [Turn(1.0, 2.0)] * 7, ERROR)
    assert (found.interval, found.verdict, found.ratio) == (None, "cannot say", 0.5)


def test_what_was_seen_comes_back_from_json():
    seen = OtherWork(3.1, 2, 0.12, 1.8)
    found = race_of("X", 1.0, 2.0, 0.5, (0.4, 0.6), 10, seen)
    assert convert(json.loads(json.dumps(to_builtins(found))), Race) == found
    assert to_builtins(found)["verdict"] == "faster"
