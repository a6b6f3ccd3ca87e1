"""The default schedule of a task that nobody has tuned: the one that the rules guess."""

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

# Gives a sketch's default program; its second argument is that program where derivation made it.
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
    """A task's module with its default schedule, in half the time of `default_schedule`.

    The derivation's own schedule is used: its trace also holds all look-ups of the rules, so it
    serves for the module only.
    """
    return _found(mod, target, rules, warn, _derived).sch.mod


def default_program(
    mod: tvm.IRModule,
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Program:
    """The default program of a task's module: that of the first sketch that gives one.

    It takes milliseconds to make, and is the first candidate of every search, so that a tuned
    build is never worse than an untuned one. Where its code is too large for a compiler, the task
    is derived again without the rule that unrolls so much. A module that no sketch fits keeps its
    loops, which is correct but slow. rules: the rules to ask; by default the shipped ones. warn:
    called with a sentence for each rule that had to be left out.
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
        # ScheduleError, or whatever TVM's primitives raise for programs that they do not expect.
        except (RuntimeError, ValueError) as error:
            raise_if_fault(error)
    return Program(Sketch(mod, target, ()), tvm.s_tir.Schedule(mod, debug_mask="none"), ())


def _derived(sketch: Sketch, made: Program | None) -> Program:
    """A sketch's default program, made here if need be; raises what `Sketch.program` raises."""
    if made is None:
        return sketch.program(Guess())
    check_size(made.sch, sketch.target)
    return made


def _one_by_one(
    mod: tvm.IRModule, target: Target, rules: Sequence[Rule], notes: dict[str, None]
) -> Iterator[tuple[Sketch, Program | None]]:
    """The task's first sketch; then all of them, if the caller needs more.

    The first sketch comes with its default program, if it was derived in this process.
    """
    for enough in (1, sys.maxsize):
        derivation = derive(mod, target, rules, enough)
        notes.update(dict.fromkeys(derivation.faults))
        first = derivation.first
        for sketch in derivation.sketches:
            yield sketch, first if first and first.sketch is sketch else None
