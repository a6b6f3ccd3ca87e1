"""Questions, their options and their choosers: one protocol for tiles and for other choices."""

import itertools
import math
import random

import pytest

from ansor_deploy.space.question import Decided, Decision, Guess, Question, Random
from ansor_deploy.space.tiles import Tiles, divisors


def listed(extent, parts, limit):
    """Every way to write an extent as an ordered product, by trying all."""
    found = itertools.product(divisors(extent), repeat=parts)
    return {f for f in found if math.prod(f) == extent and (parts == 1 or f[-1] <= limit)}


@pytest.mark.parametrize(
    ("extent", "parts", "limit"),
    [(1, 1, 64), (12, 1, 4), (12, 2, 64), (36, 3, 4), (64, 4, 8), (7, 3, 5), (30, 5, 64)],
)
def test_tiles_number_every_factorisation_once(extent, parts, limit):
    tiles = Tiles(extent, parts, limit)
    found = list(tiles)
    assert len(found) == len(set(found)) == len(tiles)
    assert set(found) == listed(extent, parts, limit)
    assert [tiles.index(factors) for factors in found] == list(range(len(tiles)))


def test_tiles_are_counted_and_not_listed():
    """There are 10^8 of them and more: a list would not be ready before the test gives up."""
    tiles = Tiles(2**20 * 3**4, 8, 64)
    assert len(tiles) > 10**8
    assert math.prod(tiles[len(tiles) // 2]) == tiles.extent
    assert tiles.index(tiles[len(tiles) - 1]) == len(tiles) - 1


@pytest.mark.parametrize("factors", [(), (12,), (4, 4), (1, 12), (12, 1, 1), (-3, -4), (0, 12)])
def test_what_does_not_split_the_extent_has_no_number(factors):
    with pytest.raises(ValueError):  # noqa: PT011 - of length or of factors
        Tiles(12, 2, 6).index(factors)


def test_there_is_no_tile_beyond_the_last():
    tiles = Tiles(12, 2, 64)
    for at in (-1, len(tiles)):
        with pytest.raises(IndexError):
            tiles[at]


def test_near_tiles_differ_by_one_prime_factor_and_reach_all():
    tiles = Tiles(72, 3, 8)
    seen, pending = set(), [0]
    while pending:
        at = pending.pop()
        if at not in seen:
            seen.add(at)
            pending += tiles.near(at)
            for near in tiles.near(at):
                ratios = [b / a for a, b in zip(tiles[at], tiles[near], strict=True)]
                changed = sorted(ratio for ratio in ratios if ratio != 1)
                assert changed in ([1 / 2, 2], [1 / 3, 3])
    assert len(seen) == len(tiles)


def test_neighbours_are_a_matter_of_the_question():
    options = (0, 16, 64)
    assert list(Question("unroll", "b", options, ordered=True).near(0)) == [1]
    assert list(Question("unroll", "b", options, ordered=True).near(1)) == [0, 2]
    assert list(Question("unroll", "b", options).near(1)) == []


def test_questions_are_compared_by_what_they_ask_and_not_by_their_options():
    asked = Question("order", "b0", ([1], {}), 1)
    assert asked == Question("order", "b0", (2, 3))
    assert hash(asked) == hash(Question("order", "b0", (2, 3)))
    others = [("order", "b1", (1, 2)), ("pack", "b0", (1, 2)), ("order", "b0", (1, 2, 3))]
    assert all(asked != Question(*other) for other in others)


def test_a_chooser_answers_tiles_and_choices_alike():
    tile = Question("tile", "b", Tiles(12, 2, 4), 3)
    choice = Question("unroll", "b", (0, 16, 64), 1)
    assert [Guess().answer(tile), Guess().answer(choice)] == [3, 1]
    chooser = Random(random.Random(0))
    for question in (tile, choice):
        found = {chooser.answer(question) for _ in range(200)}
        assert found == set(range(question.size))


def test_decisions_are_repeated_until_another_question_is_asked():
    first, second, third = (Question("order", node, (0, 1, 2)) for node in "abc")
    decided = Decided([Decision(first, 2), Decision(second, 1), Decision(third, 2)], Guess())
    assert decided.answer(first) == 2
    ahead = decided.fork()
    assert [decided.answer(third), decided.answer(third)] == [0, 0]  # shifted: the rest is dropped
    assert [ahead.answer(second), ahead.answer(third), ahead.answer(third)] == [1, 2, 0]


def test_what_was_decided_is_the_option():
    tiles = Tiles(12, 2, 4)
    assert Decision(Question("tile", "b", tiles), tiles.index((4, 3))).option == (4, 3)
    assert Decision(Question("location", "b", ("root", "task")), 1).option == "task"
