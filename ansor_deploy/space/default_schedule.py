"""The default schedule of a task: what the rules think best, for whatever nobody has tuned."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._tvm import tvm
from ..system.machine_fault import raise_if_fault
from ..target import Target
from .code_size import TooMuchCodeError, check_size
from .derivation import derive
from .question import Guess
from .rule import Rule, shipped_rules
from .sketch import Program, Sketch

# A sketch's default program, given what the derivation made of it, if it did.
_ProgramOf = Callable[[Sketch, "Program | None"], Program]


def default_schedule(
    mod: tvm.IRModule,
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Any:
    """The schedule (`tvm.s_tir.Schedule`, traced) of a task's default program."""
    return default_program(mod, target, rules, warn).sch


def default_module(
    mod: tvm.IRModule,
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> tvm.IRModule:
    """A task's module scheduled so, in half the time of its schedule with a trace.

    It is what the derivation made, whose trace has all that rules looked up on the way as well.
    """
    return _found(mod, target, rules, warn, _derived).sch.mod


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
    return _found(mod, target, rules, warn, lambda sketch, _: sketch.program(Guess()))


def _found(
    mod: tvm.IRModule,
    target: Target,
    rules: Sequence[Rule] | None,
    warn: Callable[[str], None],
    program_of: _ProgramOf,
) -> Program:
    notes: dict[str, None] = {}  # in order, each once
    asked = shipped_rules(target.kind) if rules is None else rules
    found = _first_program(mod, target, asked, notes, program_of)
    for note in notes:
        warn(note)
    return found


def _first_program(
    mod: tvm.IRModule,
    target: Target,
    rules: Sequence[Rule],
    notes: dict[str, None],
    program_of: _ProgramOf,
) -> Program:
    for sketch, made in _one_by_one(mod, target, rules, notes):
        try:
            return program_of(sketch, made)
        except TooMuchCodeError:  # noqa: PERF203 - rarely more than one
            if (found := sketch.excess(Guess())) is not None:
                rule, error = found
                notes[f"the rule {rule.name} {error}: the task is scheduled without it"] = None
                others = [other for other in rules if other is not rule]
                return _first_program(mod, target, others, notes, program_of)
        # ScheduleError, and what TVM's primitives raise where they did not think of a program.
        except (RuntimeError, ValueError) as error:
            raise_if_fault(error)
    return Program(Sketch(mod, target, ()), tvm.s_tir.Schedule(mod, debug_mask="none"), ())


def _derived(sketch: Sketch, made: Program | None) -> Program:
    """A sketch's default program, made already or not; raises as `Sketch.program` does."""
    if made is None:
        return sketch.program(Guess())
    check_size(made.sch, sketch.target)
    return made


def _one_by_one(
    mod: tvm.IRModule, target: Target, rules: Sequence[Rule], notes: dict[str, None]
) -> Iterator[tuple[Sketch, Program | None]]:
    """The task's first sketch, and all of them only where that is not enough.

    Of the first with its default program, where it was derived in this process.
    """
    for enough in (1, sys.maxsize):
        derivation = derive(mod, target, rules, enough)
        notes.update(dict.fromkeys(derivation.faults))
        first = derivation.first
        for sketch in derivation.sketches:
            yield sketch, first if first and first.sketch is sketch else None
