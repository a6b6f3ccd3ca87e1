"""Free choices of a rule: the question, the decision, and the choosers that answer.

A chooser answers the questions of a derivation in the order in which they are asked: with the
rule's own guess, at random, or with earlier decisions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Protocol

from .tiles import Tiles


@dataclass(frozen=True)
class Question:
    """A free choice that a rule leaves open.

    about: what it decides, such as "unroll", or "tile" for the sizes of nested loops. node: the
    block that it is about. options: the possible answers. Since an option may be anything, two
    questions are equal if they have equally many options. guess: the index of the option that the
    rule thinks best. ordered: whether the options are in order, so that neighbours are alike.
    """

    about: str
    node: str
    options: tuple[Any, ...] | Tiles = field(repr=False, compare=False)
    guess: int = field(default=0, compare=False)
    ordered: bool = field(default=False, compare=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.options))

    def near(self, index: int) -> Sequence[int]:
        """Indices of the options most like this one; empty where the options have no order."""
        if isinstance(self.options, Tiles):
            return self.options.near(index)
        beside = (index - 1, index + 1) if self.ordered else ()
        return [at for at in beside if 0 <= at < self.size]

    def to_json(self) -> dict[str, Any]:
        """A JSON object, from which `from_json` makes an equal question in another process.

        An option that JSON cannot hold is there as its text only.
        """
        options = self.options
        return {
            "about": self.about,
            "node": self.node,
            "tiles": vars(options) if isinstance(options, Tiles) else None,
            "options": [] if isinstance(options, Tiles) else [_plain(one) for one in options],
            "guess": self.guess,
            "ordered": self.ordered,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Question:
        """The question that `to_json` wrote."""
        tiles, options = data["tiles"], tuple(map(_option, data["options"]))
        of = Tiles(**tiles) if tiles else options
        return cls(data["about"], data["node"], of, data["guess"], data["ordered"])


@dataclass(frozen=True)
class Decision:
    """A question and its answer. index: the index of the chosen option."""

    question: Question
    index: int

    @property
    def option(self) -> Any:
        """The chosen option; for a tile, its factors."""
        return self.question.options[self.index]


class Chooser(Protocol):
    """Answers the questions of a derivation."""

    def answer(self, question: Question) -> int:
        """The index of one of the options; ValueError where none of them is acceptable."""

    def fork(self) -> Chooser:
        """A chooser that answers coming questions as this one would, and does not change this one.

        A rule that derives several structures asks the same questions for each. A chooser must
        therefore replace its state after an answer, never mutate it.
        """
        return copy(self)


class Guess(Chooser):
    """Answers with the rule's guess, which gives the default schedule."""

    def answer(self, question: Question) -> int:
        """The guess."""
        return question.guess


class Random(Chooser):
    """Answers with any of the options, each equally likely; a fork shares the generator."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def answer(self, question: Question) -> int:
        """A random option."""
        return self._rng.randrange(question.size)


class Decided(Chooser):
    """Repeats the given decisions while the same questions are asked, then asks another chooser.

    otherwise: that other chooser, such as `Guess` or `Random`; a fork shares it.
    """

    def __init__(self, decisions: Sequence[Decision], otherwise: Chooser) -> None:
        self._left: list[Decision | None] = list(decisions)
        self._otherwise = otherwise

    def answer(self, question: Question) -> int:
        """The next decision; after the first question that differs, decisions are not used."""
        decision, *self._left = self._left or [None]
        if decision is not None and decision.question == question:
            return decision.index
        self._left = []
        return self._otherwise.answer(question)


def _plain(option: Any) -> Any:
    if isinstance(option, (tuple, list)):
        return [_plain(one) for one in option]
    return option if option is None or isinstance(option, (bool, int, float, str)) else repr(option)


def _option(value: Any) -> Any:
    """An option as it was before `_plain`: lists become tuples again."""
    return tuple(map(_option, value)) if isinstance(value, list) else value
