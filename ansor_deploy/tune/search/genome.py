"""Genomes: the decisions that evolution breeds, before a program is made of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...space.question import Chooser, Decided, Decision, Question
from ...space.sketch import Program, Sketch
from ...space.tiles import Tiles
from ...space.trace import dump
from ...system.machine_fault import raise_if_fault
from .experience import choices
from .features import Choice


@dataclass(frozen=True)
class Genome:
    """A sketch's index and its decisions. merged: whether the program must take exactly these."""

    sketch: int
    decisions: tuple[Decision, ...]
    merged: bool = field(default=False, compare=False)

    def __hash__(self) -> int:
        """Hash the answers only: questions follow from them, and pools hash very often."""
        return hash((self.sketch, *[decision.index for decision in self.decisions]))


Made = tuple[Genome, Program]  # a program, and its final decisions


def templates(sketches: Sequence[Sketch]) -> list[Genome]:
    """The questions of each sketch, answered by its rules' guesses."""
    return [Genome(at, sketch.guesses) for at, sketch in enumerate(sketches)]


def build(sketches: Sequence[Sketch], genome: Genome, otherwise: Chooser) -> Made | None:
    """The genome's program; None where its decisions do not fit, or a rule raises.

    otherwise: answers questions that the decisions do not answer, since rules may ask others.
    """
    made = program(sketches, genome.sketch, Decided(genome.decisions, otherwise))
    return None if made and genome.merged and made[0] != genome else made


def recover(sketches: Sequence[Sketch], trace: str, kept: Sequence[Choice] = ()) -> Made | None:
    """The decisions that led to a recorded trace, and the program; None if no sketch leads to it.

    kept: the program's choices, as `experience.choices` gives them: their sketch is tried first.
    """
    values = _sampled(trace)
    rules = [choices(sketch, ()) for sketch in sketches]
    likely = sorted(range(len(sketches)), key=lambda at: rules[at] != kept[: len(rules[at])])
    for at in likely:
        candidate = program(sketches, at, _Recorded(values))
        if candidate and dump(candidate[1].sch.trace) == trace:
            return candidate
    return None


def program(sketches: Sequence[Sketch], at: int, chooser: Chooser) -> Made | None:
    """A sketch's program under a chooser's answers; None where they do not fit."""
    try:
        made = sketches[at].program(chooser)
    except Exception as error:  # noqa: BLE001 - a rule may be a user's, and a candidate is data
        raise_if_fault(error)
        return None
    return Genome(at, made.decisions), made


class _Recorded(Chooser):
    """Answers with a trace's sampled values in order; ValueError where one is no option."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._left = list(values)

    def answer(self, question: Question) -> int:
        value, *self._left = self._left or [None]
        if isinstance(value, list) and isinstance(question.options, Tiles):
            return question.options.index(value)
        if not isinstance(value, int) or not 0 <= value < question.size:
            raise ValueError(f"{value} is none of {question.size} options")
        return value


def _sampled(trace: str) -> list[Any]:
    """The values of a trace's sampling instructions, in order; empty if it is no trace."""
    try:
        _, decisions = json.loads(trace)
        return [value for _, value in sorted(decisions, key=lambda pair: pair[0])]
    except (ValueError, TypeError, KeyError, IndexError):
        return []
