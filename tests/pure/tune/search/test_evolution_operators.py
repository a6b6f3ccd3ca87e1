"""Mutation and crossover of decisions: children that are valid, near their parents, and varied."""

import math
import random

import pytest

from ansor_deploy.space.question import Decision, Question
from ansor_deploy.space.tiles import Tiles, divisors
from ansor_deploy.tune.search.variation import crossover, mutate, resample

TILE = Tiles(224, 4, 16)


def decision(about, node, index, size):
    return Decision(Question(about, node, tuple(range(size)), ordered=about == "register"), index)


def tile_of(tiles, factors):
    return Decision(Question("tile", "conv", tiles), tiles.index(factors))


DECISIONS = (
    tile_of(TILE, (4, 2, 7, 4)),
    decision("register", "conv", 3, 12),
    decision("unroll", "conv", 0, 4),
    decision("location", "pad", 1, 2),
    decision("order", "pad", 0, 1),
)


def children(count=300, seed=0, of=DECISIONS):
    rng = random.Random(seed)
    return [mutate(of, rng) for _ in range(count)]


def questions(decisions):
    return [one.question for one in decisions]


def assert_valid(one):
    assert 0 <= one.index < one.question.size
    if one.question.about == "tile":
        assert math.prod(one.option) == TILE.extent
        assert one.option[-1] <= TILE.limit


@pytest.mark.parametrize("make", [mutate, resample])
def test_every_child_answers_the_same_questions_with_something_allowed(make):
    rng = random.Random(1)
    for _ in range(300):
        child = make(DECISIONS, rng)
        assert questions(child) == questions(DECISIONS)
        for one in child:
            assert_valid(one)


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
        ratios = [b / a for a, b in zip(tile[0].option, mutate(tile, rng)[0].option, strict=True)]
        assert math.prod(ratios) == pytest.approx(1)
    singles = {mutate(tile, random.Random(seed))[0].option for seed in range(200)}
    assert (8, 1, 7, 4) in singles
    assert all(factors[-1] <= 16 for factors in singles)


def test_options_in_order_lead_to_those_beside_them_most_often_and_to_any():
    ordered, loose = (decision(about, "conv", 5, 12) for about in ("register", "order"))
    beside = []
    for one in (ordered, loose):
        found = [mutate((one,), random.Random(seed))[0].index for seed in range(600)]
        assert len(set(found)) >= 11
        beside.append(sum(abs(index - 5) == 1 for index in found) / len(found))
    assert beside[0] > 0.35
    assert beside[1] < 0.3


def test_nothing_to_change_is_no_endless_loop():
    fixed = (tile_of(Tiles(1, 2, 64), (1, 1)), decision("order", "x", 0, 1))
    assert mutate(fixed, random.Random(0)) == fixed
    assert mutate((), random.Random(0)) == ()


def test_resampling_reaches_every_factorisation():
    tile = (tile_of(Tiles(12, 2, 64), (12, 1)),)
    rng = random.Random(0)
    found = {resample(tile, rng)[0].option for _ in range(300)}
    assert len(found) == tile[0].question.size == len(divisors(12))


def test_a_child_of_two_takes_each_node_from_one_parent():
    mother, father = DECISIONS, resample(DECISIONS, random.Random(5))
    rng = random.Random(0)
    for _ in range(50):
        child = crossover(mother, father, rng)
        for node in ("conv", "pad"):
            mine = [d for d in child if d.question.node == node]
            assert mine in (
                [d for d in mother if d.question.node == node],
                [d for d in father if d.question.node == node],
            )


def test_parents_that_were_asked_different_questions_have_no_child():
    assert crossover(DECISIONS, DECISIONS[:-1], random.Random(0)) is None
    assert crossover(DECISIONS[:1], DECISIONS[:1], random.Random(0)) is None


def test_in_a_program_of_one_block_each_decision_is_of_one_parent():
    mother = [one for one in DECISIONS if one.question.node == "conv"]
    father = resample(mother, random.Random(5))
    children = {crossover(mother, father, random.Random(seed)) for seed in range(50)}
    assert len(children) > 2
    for child in children:
        assert all(one in pair for one, *pair in zip(child, mother, father, strict=True))
        assert child not in (tuple(mother), father)
