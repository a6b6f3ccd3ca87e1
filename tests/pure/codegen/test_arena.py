"""Tensors that live at once lie apart, and all of them in little more than the most that do."""

import random

import pytest

from ansor_deploy.codegen.memory.arena import ALIGNMENT, Life, aligned, most_alive, plan


def alive(lives):
    """The most bytes, each tensor a whole number of lines, that live at one step."""
    return sum(aligned(lives[at].size) for at in most_alive(lives))


def drawn(seed, count=120):
    """Tensors of a network: most are used soon after they were made, some much later."""
    numbers = random.Random(seed)
    made = []
    for step in range(count):
        last = step + (numbers.randrange(1, 40) if numbers.random() < 0.2 else 1)
        made.append(Life(numbers.choice((4, 640, 4096, 6400, 100_000)), step, last))
    return made


@pytest.mark.parametrize("seed", range(8))
def test_what_lives_at_once_lies_apart(seed):
    lives = drawn(seed)
    offsets, size = plan(lives)
    placed = list(zip(lives, offsets, strict=True))
    for at, (life, offset) in enumerate(placed):
        assert offset % ALIGNMENT == 0
        assert offset + life.size <= size
        for other, begin in placed[:at]:
            apart = offset + life.size <= begin or begin + other.size <= offset
            assert apart or not life.meets(other)
    assert alive(lives) <= size <= 1.1 * alive(lives)


def test_a_chain_takes_its_largest_neighbours():
    sizes = (64, 1024, 4096, 2048, 128)
    lives = [Life(size, at, at + 1) for at, size in enumerate(sizes)]
    assert plan(lives)[1] == alive(lives) == 4096 + 2048
    assert most_alive(lives) == [2, 3]


def test_nothing_takes_nothing():
    assert plan([]) == ([], 0)
    assert most_alive([]) == []
