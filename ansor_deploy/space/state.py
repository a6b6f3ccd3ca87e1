"""A program in the course of its derivation, and who makes its free choices.

A chooser answers each question of a rule in the order in which they are asked: with the rule's
own guess, at random, or as it was decided before. Every answer is also a sampling instruction in
the schedule's trace, so that a record tells which decisions it came from.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Decision:
    """One free choice that was made.

    kind: "tile" (value: factors whose product is the extent) or what a choice is about:
    "parallel", "unroll", "location", "register" (value: index of the option taken).
    node: the block for which it was asked. size: extent of the loop, or number of options.
    """

    kind: str
    node: str
    value: tuple[int, ...] | int
    size: int
    limit: int = 0  # largest innermost factor of a tile; 0 for choices
    options: tuple[Any, ...] = field(default=(), compare=False, repr=False)  # of a choice

    @property
    def meaning(self) -> Any:
        """The factors, or the option itself: what the value means to a task of other sizes."""
        return self.value if isinstance(self.value, tuple) else self.options[self.value]


class Chooser(Protocol):
    """Answers the questions of a derivation."""

    def choose(self, kind: str, node: str, options: Sequence[Any], guess: int) -> int:
        """Index of one of the options."""

    def tile(self, node: str, extent: int, parts: int, limit: int, guess: Sequence[int]) -> Any:
        """`parts` factors of an extent, the last at most `limit`."""

    def fork(self) -> Chooser:
        """One that answers the questions to come as this one would, and leaves this one as it is.

        A rule that derives several structures asks the same questions for each.
        """


class Guess:
    """What the rule thinks best: gives the default schedule."""

    def choose(self, kind: str, node: str, options: Sequence[Any], guess: int) -> int:
        """The guess."""
        return guess

    def tile(
        self, node: str, extent: int, parts: int, limit: int, guess: Sequence[int]
    ) -> tuple[int, ...]:
        """The guess."""
        return tuple(guess)

    def fork(self) -> Guess:
        """This one: it keeps nothing."""
        return self


class Random:
    """Uniform over the options, and over all factorisations of an extent."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def choose(self, kind: str, node: str, options: Sequence[Any], guess: int) -> int:
        """Any of the options."""
        return self._rng.randrange(len(options))

    def tile(
        self, node: str, extent: int, parts: int, limit: int, guess: Sequence[int]
    ) -> tuple[int, ...]:
        """Any of the factorisations."""
        return self._rng.choice(factorisations(extent, parts, limit))

    def fork(self) -> Random:
        """This one: its next answer is as good as any."""
        return self


class Replay:
    """The given decisions while the same questions are asked, then another chooser's answers."""

    def __init__(self, decisions: Sequence[Decision], otherwise: Chooser) -> None:
        self._left = list(reversed(decisions))
        self._otherwise = otherwise

    def choose(self, kind: str, node: str, options: Sequence[Any], guess: int) -> int:
        """As decided, if that is one of the options."""
        decided = self._next(kind, node, len(options))
        if isinstance(decided, int) and decided < len(options):
            return decided
        return self._otherwise.choose(kind, node, options, guess)

    def tile(
        self, node: str, extent: int, parts: int, limit: int, guess: Sequence[int]
    ) -> tuple[int, ...]:
        """As decided, if those are factors of the extent."""
        decided = self._next("tile", node, extent)
        if isinstance(decided, tuple) and len(decided) == parts:
            return decided
        return self._otherwise.tile(node, extent, parts, limit, guess)

    def fork(self) -> Replay:
        """The decisions that are left."""
        return Replay(self._left[::-1], self._otherwise.fork())

    def _next(self, kind: str, node: str, size: int) -> tuple[int, ...] | int | None:
        """The next decision, if it answers this question; a shifted derivation drops the rest."""
        if not self._left:
            return None
        decision = self._left.pop()
        if (decision.kind, decision.node, decision.size) == (kind, node, size):
            return decision.value
        self._left.clear()
        return None


@dataclass
class State:
    """A schedule under derivation.

    node: the block being visited. done: blocks that need no further rule nor annotation.
    revisit: the rules are asked once more about the block that was just changed.
    """

    sch: Any
    chooser: Chooser
    node: str = ""
    decisions: list[Decision] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    revisit: bool = False

    def again(self) -> State:
        """This state, its block to be visited once more."""
        self.revisit = True
        return self

    def copy(self) -> State:
        """An independent state, which is answered as this one would be."""
        decisions, done = list(self.decisions), set(self.done)
        return State(self.sch.copy(), self.chooser.fork(), self.node, decisions, done)

    def block(self, name: str) -> Any:
        """The block's random variable in the schedule."""
        return self.sch.get_sblock(name)

    def choose(self, kind: str, options: Sequence[T], guess: int = 0) -> T:
        """One of the options. kind: what it is about, which tells the mutators how to change it.

        guess: index of the option that the rule thinks best.
        """
        index = self.chooser.choose(kind, self.node, options, guess)
        option = options[index]
        made = Decision(kind, self.node, index, len(options), options=tuple(options))
        self.decisions.append(made)
        share = 1.0 / len(options)
        self.sch.sample_categorical(list(range(len(options))), [share] * len(options), index)
        return option

    def sample_tile(
        self, loop: Any, parts: int, limit: int = 64, guess: Sequence[int] | None = None
    ) -> list[Any]:
        """The loop split into `parts`, their product its extent, the last at most `limit`."""
        extent = int(self.sch.get(loop).extent)
        guess = guess or [extent, *[1] * (parts - 1)]
        factors = self.chooser.tile(self.node, extent, parts, limit, guess)
        decided = tuple(factors)
        self.decisions.append(Decision("tile", self.node, decided, extent, limit))
        sampled = self.sch.sample_perfect_tile(loop, parts, max(limit, factors[-1]), factors)
        return list(self.sch.split(loop, sampled))


@lru_cache(maxsize=4096)
def factorisations(extent: int, parts: int, limit: int) -> tuple[tuple[int, ...], ...]:
    """All ways to write an extent as an ordered product, the last factor at most `limit`."""
    if parts == 1:
        return ((extent,),)
    found = []
    for last in divisors(extent):
        if last <= limit:
            found += [(*head, last) for head in _products(extent // last, parts - 1)]
    return tuple(found)


@lru_cache(maxsize=4096)
def _products(extent: int, parts: int) -> tuple[tuple[int, ...], ...]:
    if parts == 1:
        return ((extent,),)
    return tuple(
        (*head, last) for last in divisors(extent) for head in _products(extent // last, parts - 1)
    )


def divisors(extent: int) -> list[int]:
    """All divisors, ascending, in the square root of the extent's time."""
    small = [d for d in range(1, int(extent**0.5) + 1) if extent % d == 0]
    return small + [extent // d for d in reversed(small) if d * d != extent]
