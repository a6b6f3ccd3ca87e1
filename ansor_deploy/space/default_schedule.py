"""The default schedule of a task: what the rules think best, for whatever nobody has tuned."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._tvm import tvm
from ..system.machine_fault import raise_if_fault
from ..target import Target
from .code_size import TooMuchCodeError
from .derivation import derive
from .question import Guess
from .rule import Rule, shipped_rules
from .sketch import Program, Sketch


def default_schedule(
    mod: tvm.IRModule,
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Any:
    """The schedule (`tvm.s_tir.Schedule`, traced) of a task's default program."""
    return default_program(mod, target, rules, warn).sch


def default_program(
    mod: tvm.IRModule,
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Program:
    """The program of a task's module that nobody has tuned.

    It is what the rules think best, takes milliseconds, and is the first candidate of every
    search, so that a tuned build is never worse than an untuned one: the program of the first
    sketch that gives one. Where that is too much code for a compiler, the task is derived anew
    without the rule that writes it out. A module that no sketch fits keeps its loops as they are:
    correct, and slow. rules: that are asked; by default the shipped ones. warn: called with a
    sentence for each that had to be left out.
    """
    notes: dict[str, None] = {}  # in order, each once
    asked = shipped_rules(target.kind) if rules is None else rules
    found = _first_program(mod, target, asked, notes)
    for note in notes:
        warn(note)
    return found


def _first_program(
    mod: tvm.IRModule, target: Target, rules: Sequence[Rule], notes: dict[str, None]
) -> Program:
    for sketch in _one_by_one(mod, target, rules, notes):
        try:
            return sketch.program(Guess())
        except TooMuchCodeError:  # noqa: PERF203 - rarely more than one
            if (found := sketch.excess(Guess())) is not None:
                rule, error = found
                notes[f"the rule {rule.name} {error}: the task is scheduled without it"] = None
                others = [other for other in rules if other is not rule]
                return _first_program(mod, target, others, notes)
        # ScheduleError, and what TVM's primitives raise where they did not think of a program.
        except (RuntimeError, ValueError) as error:
            raise_if_fault(error)
    return Program(Sketch(mod, target, ()), tvm.s_tir.Schedule(mod, debug_mask="none"), ())


def _one_by_one(
    mod: tvm.IRModule, target: Target, rules: Sequence[Rule], notes: dict[str, None]
) -> Iterator[Sketch]:
    """The task's first sketch, and all of them only where that is not enough."""
    for enough in (1, sys.maxsize):
        derivation = derive(mod, target, rules, enough)
        notes.update(dict.fromkeys(derivation.faults))
        yield from derivation.sketches
