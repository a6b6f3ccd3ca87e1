"""The schedule of a task that nobody has tuned: what the rules think best.

It is deterministic, takes milliseconds, and is the first candidate of every search, so that a
tuned build is never worse than an untuned one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tvm import tvm
from ..target import Target
from .question import Guess
from .rule import Rule, shipped_rules
from .sketch import derive


def default_schedule(
    mod: tvm.IRModule,
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Any:
    """A schedule (`tvm.s_tir.Schedule`, traced) of the task's module.

    The first sketch that gives a program; a module that no sketch fits keeps its loops as they
    are: correct, and slow. rules: that are asked; by default the shipped ones. warn: called with a
    sentence for each that had to be left out.
    """
    derivation = derive(mod, target, shipped_rules(target.kind) if rules is None else rules)
    for fault in derivation.faults:
        warn(fault)
    for sketch in derivation.sketches:
        try:
            return sketch.program(Guess()).sch
        # ScheduleError, and what TVM's primitives raise where they did not think of a program.
        except (RuntimeError, ValueError):  # noqa: PERF203 - rarely more than one
            continue
    return tvm.s_tir.Schedule(mod, debug_mask="none")
