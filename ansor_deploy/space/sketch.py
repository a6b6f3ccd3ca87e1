"""A sketch: the path of rules that leads to a structure of programs (Ansor, section 4.1).

Following the path again with other decisions gives other programs of the same structure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from traceback import walk_tb
from typing import Any

from .._tvm import tvm
from ..system.machine_fault import raise_if_fault
from ..system.words import last_line
from ..target import Target
from .annotate import annotate
from .code_size import TooMuchCodeError, check_size
from .question import Chooser, Decision
from .rule import RULE_MODULE, Rule
from .rule_process import RuleProcess
from .state import State
from .trace import replay

SKIP = "skip"  # the rule that keeps a block's loops
_FRAMES = 3  # most frames of a rule's file that a message names


@dataclass(frozen=True)
class Step:
    """One rule applied at one block. branch: which of the states that it derived."""

    block: str
    rule: Rule
    branch: int


@dataclass(frozen=True)
class Program:
    """A complete program: a schedule and the decisions that made it."""

    sketch: Sketch
    sch: Any = field(repr=False, compare=False)
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Sketch:
    """A structure of a task: the path of rules that leads to it.

    guesses: the decisions of its default program. text: `mod` as JSON, where a process needs it.
    """

    mod: Any = field(repr=False, compare=False)
    target: Target = field(repr=False)
    path: tuple[Step, ...]
    guesses: tuple[Decision, ...] = field(default=(), repr=False, compare=False)
    text: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        return " ".join(f"{block}:{rule}" for block, rule in self.steps) or "as it stands"

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Its steps as (block, rule), without those of the rule `skip`."""
        steps = [(step.block, step.rule.name) for step in self.path]
        return [step for step in steps if step[1] != SKIP]

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules of these steps, each once."""
        return tuple(dict.fromkeys(rule for _, rule in self.steps))

    @property
    def size(self) -> int:
        """About how many programs it has: the product of the options of its default program.

        Other answers may lead to other questions, and some of the answers fit no program.
        """
        return prod(one.question.size for one in self.guesses)

    def program(self, chooser: Chooser) -> Program:
        """A program of this structure; RuntimeError or ValueError where decisions do not fit.

        TooMuchCodeError, a ValueError, where the program would take the compiler too long.
        """
        if process := process_of([step.rule for step in self.path]):
            trace, decisions = process.program(self.text, self.target, self._path, chooser)
            sch = replay(self.mod, trace)
        else:
            state = self.derived(chooser)
            sch, decisions = state.sch, tuple(state.decisions)
        check_size(sch, self.target)
        return Program(self, sch, decisions)

    def derived(self, chooser: Chooser) -> State:
        """The state at the end of the path, derived in this process; raises as `program` does."""
        state = start(self.mod, chooser)
        for step in self.path:
            state = _follow(step, state, self.target)
        annotate(state, self.target)
        return state

    def excess(self, chooser: Chooser) -> tuple[Rule, TooMuchCodeError] | None:
        """The rule of the first step that makes a program too much code, and the error; or None."""
        rules = [step.rule for step in self.path]
        if process := process_of(rules):
            found = process.excess(self.text, self.target, self._path, chooser)
            named = {rule.name: rule for rule in rules}
            return (named[found[0]], TooMuchCodeError(found[1])) if found else None
        state = start(self.mod, chooser)
        for step in self.path:
            state = _follow(step, state, self.target)
            try:
                check_size(state.sch, self.target)
            except TooMuchCodeError as error:
                return step.rule, error
        return None

    @property
    def _path(self) -> list[tuple[str, Rule, int]]:
        return [(step.block, step.rule, step.branch) for step in self.path]


def process_of(rules: Iterable[Rule]) -> RuleProcess | None:
    """The process of the user's rules among these; None without any."""
    return next((rule.process for rule in rules if rule.process), None)


def start(mod: tvm.IRModule, chooser: Chooser) -> State:
    """The state before any rule: the task's own program."""
    return State(tvm.s_tir.Schedule(mod, debug_mask="none"), chooser)


def _follow(step: Step, state: State, target: Target) -> State:
    """Apply one step of a path.

    A user's rule may raise anything under some choices: it becomes a ValueError, a misfit.
    """
    state.node = step.block
    try:
        return list(step.rule.apply(state, step.block, target))[step.branch]
    except (RuntimeError, ValueError):
        raise
    except Exception as error:
        raise_if_fault(error)
        raise ValueError(f"the rule {step.rule.name} {raised(error)}") from error


def raised(error: Exception) -> str:
    """The error that a rule raised, as the end of a sentence, and where in its file."""
    frames = [
        f"{Path(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").startswith(RULE_MODULE)
    ]
    where = f" ({', '.join(frames[:_FRAMES])})" if frames else ""
    return f"raised {type(error).__name__}: {last_line(error)}{where}"
