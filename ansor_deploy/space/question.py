"""Free choices of a rule: the question, the decision, and the choosers that answer.

A chooser answers the questions of a derivation in the order in which they are asked: with the
rule's own guess, at random, or as it was decided before.
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
    block for which it is asked. options: the possible answers; of two questions only their number
    is compared, for an option may be anything. guess: index of the one that the rule thinks best.
    ordered: whether the options stand in order, so that those beside one are the most like it.
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
        """Indices of the options most like one: none where nothing is known of their likeness."""
        if isinstance(self.options, Tiles):
            return self.options.near(index)
        beside = (index - 1, index + 1) if self.ordered else ()
        return [at for at in beside if 0 <= at < self.size]

    def to_json(self) -> dict[str, Any]:
        """A JSON object, from which `from_json` makes an equal question in another process.

        Of an option that JSON cannot hold only its text is there.
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
        """What `to_json` wrote."""
        tiles, options = data["tiles"], tuple(map(_option, data["options"]))
        of = Tiles(**tiles) if tiles else options
        return cls(data["about"], data["node"], of, data["guess"], data["ordered"])


@dataclass(frozen=True)
class Decision:
    """A question and its answer. index: of the option that was chosen."""

    question: Question
    index: int

    @property
    def option(self) -> Any:
        """What was chosen: the factors of a tile, or the option itself."""
        return self.question.options[self.index]


class Chooser(Protocol):
    """Answers the questions of a derivation."""

    def answer(self, question: Question) -> int:
        """Index of one of the options; ValueError where none of them will do."""

    def fork(self) -> Chooser:
        """One that answers the questions to come as this one would, and leaves this one as it is.

        A rule that derives several structures asks the same questions for each. What a chooser
        keeps of its answers is therefore replaced, and never changed.
        """
        return copy(self)


class Guess(Chooser):
    """Answers with what the rule thinks best, which gives the default schedule."""

    def answer(self, question: Question) -> int:
        """The guess."""
        return question.guess


class Random(Chooser):
    """Answers with any of the options, each as likely as the others; so does its fork."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def answer(self, question: Question) -> int:
        """Any of the options."""
        return self._rng.randrange(question.size)


class Decided(Chooser):
    """Repeats the given decisions while the same questions are asked, then asks another chooser.

    otherwise: that chooser, which a fork shares: a guess, or random.
    """

    def __init__(self, decisions: Sequence[Decision], otherwise: Chooser) -> None:
        self._left: list[Decision | None] = list(decisions)
        self._otherwise = otherwise

    def answer(self, question: Question) -> int:
        """The next decision; once a question differs, those that are left answer no more."""
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
    """Of a list the tuple that it was."""
    return tuple(map(_option, value)) if isinstance(value, list) else value
