"""Mutation and crossover of decisions: children that are valid, near their parents, and varied."""

import math
import random

import pytest

from ansor_deploy.search.crossover import crossover, is_merged
from ansor_deploy.search.mutate import mutate, options, resample
from ansor_deploy.space.state import Decision, divisors

DECISIONS = (
    Decision("tile", "conv", (4, 2, 7, 4), 224, limit=16),
    Decision("register", "conv", 3, 12),
    Decision("unroll", "conv", 0, 4),
    Decision("location", "pad", 1, 2),
    Decision("order", "pad", 0, 1),
)


def children(count=300, seed=0, of=DECISIONS):
    rng = random.Random(seed)
    return [mutate(of, rng) for _ in range(count)]


def questions(decisions):
    return [(d.kind, d.node, d.size, d.limit) for d in decisions]


def assert_valid(decision):
    if isinstance(decision.value, tuple):
        assert math.prod(decision.value) == decision.size
        assert decision.value[-1] <= decision.limit
    else:
        assert 0 <= decision.value < decision.size


@pytest.mark.parametrize("make", [mutate, resample])
def test_every_child_answers_the_same_questions_with_something_allowed(make):
    rng = random.Random(1)
    for _ in range(300):
        child = make(DECISIONS, rng)
        assert questions(child) == questions(DECISIONS)
        for decision in child:
            assert_valid(decision)


def test_most_children_differ_in_one_decision():
    changed = [sum(a != b for a, b in zip(c, DECISIONS, strict=True)) for c in children()]
    assert changed.count(1) > len(changed) / 2
    assert max(changed) > 1


def test_every_free_decision_is_changed_at_some_time_and_a_tile_most_often():
    hits = [sum(child[at] != DECISIONS[at] for child in children()) for at in range(5)]
    assert all(hits[:4])
    assert hits[4] == 0
    assert hits[0] == max(hits)


def test_a_tile_moves_one_prime_factor_from_one_level_to_another():
    tile = (DECISIONS[0],)
    rng = random.Random(2)
    for _ in range(100):
        ratios = [b / a for a, b in zip(tile[0].value, mutate(tile, rng)[0].value, strict=True)]
        assert math.prod(ratios) == pytest.approx(1)
    singles = {mutate(tile, random.Random(seed))[0].value for seed in range(200)}
    assert (8, 1, 7, 4) in singles
    assert all(value[-1] <= 16 for value in singles)


def test_nothing_to_change_is_no_endless_loop():
    fixed = (Decision("tile", "x", (1, 1), 1, 64), Decision("order", "x", 0, 1))
    assert mutate(fixed, random.Random(0)) == fixed
    assert mutate((), random.Random(0)) == ()


def test_resampling_reaches_every_factorisation():
    tile = (Decision("tile", "x", (12, 1), 12, 64),)
    rng = random.Random(0)
    found = {resample(tile, rng)[0].value for _ in range(300)}
    assert len(found) == options(tile[0]) == len(divisors(12))


def test_a_child_of_two_takes_each_node_from_one_parent():
    mother, father = DECISIONS, resample(DECISIONS, random.Random(5))
    rng = random.Random(0)
    for _ in range(50):
        child = crossover(mother, father, rng)
        for node in ("conv", "pad"):
            mine = [d for d in child if d.node == node]
            assert mine in (
                [d for d in mother if d.node == node],
                [d for d in father if d.node == node],
            )


def test_parents_that_were_asked_different_questions_have_no_child():
    assert crossover(DECISIONS, DECISIONS[:-1], random.Random(0)) is None
    assert crossover(DECISIONS[:3], DECISIONS[:3], random.Random(0)) is None  # one node only


def test_a_child_whose_program_decided_otherwise_is_not_merged():
    assert is_merged(list(DECISIONS), DECISIONS)
    assert not is_merged(DECISIONS[1:], DECISIONS)
