"""A neighbour's schedule made to fit a task of other sizes.

The neighbour's program is derived again, to find the rules that led to it and the questions that
they asked. The task's sketch of the same rules then gets the same answers, as nearly as its own
sizes allow.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...model.tasks import Task
from ...space.canonical_text import parse
from ...space.derivation import derive
from ...space.question import Chooser, Decision, Question
from ...space.rule import Rule
from ...space.sketch import Program, Sketch
from ...space.tiles import Tiles, divisors
from ...target import Target
from .genome import Made, program, recover
from .neighbours import Neighbour


def fitting(
    task: Task, neighbours: Iterable[Neighbour], target: Target, rules: Sequence[Rule]
) -> Iterator[tuple[Neighbour, Program]]:
    """The programs that neighbours' schedules give for a task, each with its neighbour."""
    sketches = derive(task.mod, target, rules).sketches
    for neighbour in neighbours:
        for _, made in refit(sketches, neighbour, target, rules):
            yield neighbour, made


def refit(
    sketches: Sequence[Sketch], neighbour: Neighbour, target: Target, rules: Sequence[Rule]
) -> Iterator[Made]:
    """The neighbour's schedules as programs of a task's sketches, in their order.

    Schedules that other rules led to, or that do not fit, are left out. The neighbour's text is run
    as TVMScript: it was made on this machine (see `Registry.relatives`).
    """
    machine = neighbour.machine or target
    theirs = derive(parse(neighbour.workload.text), machine, rules).sketches
    ours = {_path(sketch): at for at, sketch in enumerate(sketches)}
    for trace in neighbour.traces:
        found = recover(theirs, trace)
        at = ours.get(_path(found[1].sketch)) if found else None
        if found is None or at is None:
            continue
        if made := program(sketches, at, Refitted(found[1].decisions)):
            yield made


def _path(sketch: Sketch) -> tuple[tuple[str, str, int], ...]:
    """The identity of a structure: a family's programs have the same canonical block names."""
    return tuple((step.block, step.rule.name, step.branch) for step in sketch.path)


class Refitted(Chooser):
    """Answers the n-th question of a kind in a block as it was answered for other sizes.

    The answer is the same option; for numbers and tiles, the nearest one. A question that was not
    asked there, or without a similar option, gets the rule's guess.
    """

    def __init__(self, decisions: Iterable[Decision]) -> None:
        self._left: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for decision in decisions:
            question = decision.question
            self._left[question.about, question.node].append(decision.option)

    def answer(self, question: Question) -> int:
        """The option that is nearest to the neighbour's."""
        asked, options = (question.about, question.node), question.options
        if not (left := self._left.get(asked)):
            return question.guess
        value, *rest = left
        self._left = {**self._left, asked: rest}
        if isinstance(options, Tiles):
            return _nearest(options, value) if len(value) == options.parts else question.guess
        if value in options:
            return options.index(value)
        apart = [_apart(option, value) for option in options]
        return apart.index(min(apart)) if min(apart) < math.inf else question.guess


def _nearest(tiles: Tiles, value: Sequence[int]) -> int:
    """The split nearest to the neighbour's factors, chosen from the innermost one outwards.

    Each factor becomes the nearest divisor of the extent that the inner ones leave. The outermost
    takes the rest, so that the inner tile stays alike and only the number of tiles changes.
    """
    factors: list[int] = []
    for at, factor in enumerate(reversed(value[1:])):
        rest = tiles.extent // math.prod(factors)
        fitting = [d for d in divisors(rest) if at or d <= tiles.limit]
        factors.append(min(fitting, key=lambda d: (_apart(d, factor), -d)))
    return tiles.index([tiles.extent // math.prod(factors), *reversed(factors)])


def _apart(one: Any, other: Any) -> float:
    """Doublings between two numbers, or two tuples of numbers; infinite for anything else."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return sum(map(_apart, one, other))
    if type(one) is type(other) is int and min(one, other) >= 0:
        return abs(math.log2(max(one, 0.5) / max(other, 0.5)))
    return math.inf
