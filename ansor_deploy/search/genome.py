"""What the evolution of a task breeds: decisions, before there is a program of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..space.sketch import Candidate, Sketch
from ..space.state import Chooser, Decision, Guess, Replay
from ..space.trace import dump
from .crossover import is_merged


@dataclass(frozen=True)
class Genome:
    """A sketch's index and the decisions in it. merged: the program must take just these."""

    sketch: int
    decisions: tuple[Decision, ...]
    merged: bool = field(default=False, compare=False)


def templates(sketches: Sequence[Sketch]) -> list[Genome]:
    """The questions of each sketch, answered by its rules' guesses; of those that can be built."""
    found = [build(sketches, Genome(at, ()), Guess()) for at in range(len(sketches))]
    return [_genome(sketches, candidate) for candidate in found if candidate]


def build(sketches: Sequence[Sketch], genome: Genome, otherwise: Chooser) -> Candidate | None:
    """The genome's program; None where its decisions do not fit, or a rule raises.

    otherwise: answers the questions that the decisions do not.
    """
    candidate = program(sketches[genome.sketch], Replay(genome.decisions, otherwise))
    if candidate is None:
        return None
    if genome.merged and not is_merged(candidate.decisions, genome.decisions):
        return None
    return candidate


def recover(sketches: Sequence[Sketch], trace: str) -> tuple[Genome, Candidate] | None:
    """The decisions that led to a recorded trace; None if no sketch leads there."""
    values = _sampled(trace)
    for at, sketch in enumerate(sketches):
        candidate = program(sketch, _Recorded(values))
        if candidate is not None and dump(candidate.sch.trace) == trace:
            return Genome(at, candidate.decisions), candidate
    return None


def program(sketch: Sketch, chooser: Chooser) -> Candidate | None:
    """The sketch's program under a chooser's answers; None where they do not fit."""
    try:
        return sketch.program(chooser)
    except Exception:  # noqa: BLE001 - a rule may be a user's, and a candidate is data
        return None


class _Recorded:
    """Answers with a trace's sampled values, one after the other; ValueError where none fits."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._left = list(reversed(values))

    def choose(self, kind: str, node: str, options: Sequence[Any], guess: int) -> int:
        value = self._left.pop() if self._left else None
        if not isinstance(value, int) or not 0 <= value < len(options):
            raise ValueError(f"{value} is none of {len(options)} options")
        return value

    def tile(
        self, node: str, extent: int, parts: int, limit: int, guess: Sequence[int]
    ) -> tuple[int, ...]:
        value = self._left.pop() if self._left else None
        if not isinstance(value, list) or len(value) != parts:
            raise ValueError(f"{value} does not split {extent} into {parts}")
        return tuple(value)

    def fork(self) -> _Recorded:
        return _Recorded(self._left[::-1])


def _sampled(trace: str) -> list[Any]:
    """The values of a trace's sampling instructions, in order; empty if it is no trace."""
    try:
        _, decisions = json.loads(trace)
        return [value for _, value in sorted(decisions, key=lambda pair: pair[0])]
    except (ValueError, TypeError, KeyError, IndexError):
        return []


def _genome(sketches: Sequence[Sketch], candidate: Candidate) -> Genome:
    at = next(i for i, sketch in enumerate(sketches) if sketch is candidate.sketch)
    return Genome(at, candidate.decisions)
