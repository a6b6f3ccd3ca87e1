"""Sketches: the structures that the rules derive for a task (Ansor, section 4.1).

Blocks are visited from the output backwards. At each, the rules are asked in order; one that
applies derives new states, and unless it says to skip the rest the next is asked too. What no
rule has finished is annotated at the end. A sketch is the path of rules that led to a program;
walking the path again with other decisions gives other programs of the same structure.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Any

from .._tvm import tvm
from ..system.machine_fault import heed
from ..target import Target
from .annotate import annotate
from .block_view import blocks
from .code_size import TooMuchCodeError, check_size
from .question import Chooser, Decision, Guess
from .rule import Apply, ApplyAndSkipRest, Pass, Rule, shipped_rules
from .rule_process import RuleEndedError, RuleProcess
from .state import State
from .trace import replay

# Paper: "fewer than 10 for a typical subgraph". A rule that branches without end stops here.
MAX_SKETCHES = 32
# A cache stage is a second visit of its block. A rule that asks for more and more stops here.
MAX_VISITS = 8


@dataclass(frozen=True)
class Step:
    """One rule applied at one block. branch: which of the states that it derived."""

    block: str
    rule: Rule
    branch: int


@dataclass(frozen=True)
class RuleAnswer:
    """What one rule answered about one block. text: "applies", or why not, or how it failed.

    failed: the rule broke its contract, and was left out.
    """

    block: str
    rule: str
    text: str
    failed: bool = False


@dataclass(frozen=True)
class Program:
    """A complete program: a schedule and the decisions that made it."""

    sketch: Sketch
    sch: Any = field(repr=False, compare=False)
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Sketch:
    """A structure of a task: the path of rules that leads to it.

    guesses: the decisions of its default program, as the rules asked and answered them.
    """

    mod: Any = field(repr=False, compare=False)
    target: Target = field(repr=False)
    path: tuple[Step, ...]
    guesses: tuple[Decision, ...] = field(default=(), repr=False, compare=False)
    text: str = field(default="", repr=False, compare=False)  # of mod, where a process needs it

    def __str__(self) -> str:
        return " ".join(f"{block}:{rule}" for block, rule in self.steps) or "as it stands"

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Its steps as (block, rule), without those that keep a block's loops."""
        steps = [(step.block, step.rule.name) for step in self.path]
        return [step for step in steps if step[1] != "skip"]

    @property
    def size(self) -> int:
        """About how many programs it has: the product of the options of its default program.

        Other answers may lead to other questions, and some of the answers fit no program.
        """
        return prod(one.question.size for one in self.guesses)

    def program(self, chooser: Chooser) -> Program:
        """A program of this structure; RuntimeError or ValueError where decisions do not fit.

        The latter is TooMuchCodeError where the program would keep the compiler busy for too long.
        """
        if process := _process([step.rule for step in self.path]):
            trace, decisions = process.program(self.text, self.target, self._path, chooser)
            sch = replay(self.mod, trace)
        else:
            state = self.derived(chooser)
            sch, decisions = state.sch, tuple(state.decisions)
        check_size(sch, self.target)
        return Program(self, sch, decisions)

    def derived(self, chooser: Chooser) -> State:
        """The state at the end of the path, derived in this process; raises as `program` does."""
        state = _start(self.mod, chooser)
        for step in self.path:
            state = _follow(step, state, self.target)
        annotate(state, self.target)
        return state

    def excess(self, chooser: Chooser) -> tuple[Rule, TooMuchCodeError] | None:
        """The rule of the first step after which a program is too much code, and how much."""
        rules = [step.rule for step in self.path]
        if process := _process(rules):
            found = process.excess(self.text, self.target, self._path, chooser)
            named = {rule.name: rule for rule in rules}
            return (named[found[0]], TooMuchCodeError(found[1])) if found else None
        state = _start(self.mod, chooser)
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


@dataclass(frozen=True)
class Derivation:
    """The sketches of a task, in the order found, and what every rule answered on the way."""

    sketches: tuple[Sketch, ...]
    answers: tuple[RuleAnswer, ...]

    @property
    def faults(self) -> list[str]:
        """A sentence for each rule that was left out because it broke its contract."""
        return [_sentence(one) for one in self.answers if one.failed]


class _RuleError(Exception):
    """A rule broke its contract: the task is derived without it."""

    def __init__(self, rule: Rule, block: str, text: str) -> None:
        super().__init__(text)
        self.rule = rule
        self.answer = RuleAnswer(block, rule.name, text, failed=True)


def derive(
    mod: tvm.IRModule, target: Target, rules: Sequence[Rule], enough: int = sys.maxsize
) -> Derivation:
    """The sketches of a task's program, as if no rule broke its contract.

    A user's rules are asked in their own process, and the shipped ones with them. enough: the
    first sketches that have so many programs between them will do; nothing more is asked.
    """
    if process := _process(rules):
        return _derived_apart(process, mod, target, rules, enough)
    search = _Enumeration(mod, target, rules)
    try:
        sketches = tuple(search.run(enough))
    except _RuleError as error:
        others = derive(mod, target, [rule for rule in rules if rule is not error.rule], enough)
        return Derivation(others.sketches, (error.answer, *others.answers))
    return Derivation(sketches, tuple(search.answers))


def _derived_apart(
    process: RuleProcess, mod: tvm.IRModule, target: Target, rules: Sequence[Rule], enough: int
) -> Derivation:
    """Derived in the process of these rules, without those that have ended it."""
    asked = [rule for rule in rules if rule.name not in process.ended]
    if _process(asked) is None:
        found = derive(mod, target, asked, enough)
        return Derivation(found.sketches, (*_ended(process), *found.answers))
    text = tvm.ir.save_json(mod)
    try:
        said = process.derive(text, target, asked, enough)
    except RuleEndedError:
        return _derived_apart(process, mod, target, rules, enough)
    named = {rule.name: rule for rule in asked}
    sketches = tuple(
        Sketch(mod, target, tuple(Step(b, named[rule], at) for b, rule, at in path), guesses, text)
        for path, guesses in said.sketches
    )
    return Derivation(sketches, (*_ended(process), *(RuleAnswer(*one) for one in said.answers)))


def newly_ended(rules: Sequence[Rule]) -> list[str]:
    """A sentence for each rule that has ended its process since derivations last said so."""
    process = _process(rules)
    return [_sentence(one) for one in _ended(process)] if process else []


def _process(rules: Iterable[Rule]) -> RuleProcess | None:
    """The process of the user's rules among these; None without any."""
    return next((rule.process for rule in rules if rule.process), None)


def _ended(process: RuleProcess) -> list[RuleAnswer]:
    return [RuleAnswer(one.block, one.rule, one.text, failed=True) for one in process.unreported()]


def _sentence(answer: RuleAnswer) -> str:
    at = f" at block {answer.block}" if answer.block else ""
    return f"the rule {answer.rule} {answer.text}{at}, and is left out"


def default_schedule(
    mod: tvm.IRModule,
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Any:
    """The schedule (`tvm.s_tir.Schedule`, traced) of a task's module that nobody has tuned.

    It is what the rules think best, takes milliseconds, and is the first candidate of every
    search, so that a tuned build is never worse than an untuned one: the program of the first
    sketch that gives one. Where that is too much code for a compiler, the task is derived anew
    without the rule that writes it out. A module that no sketch fits keeps its loops as they are:
    correct, and slow. rules: that are asked; by default the shipped ones. warn: called with a
    sentence for each that had to be left out.
    """
    notes: dict[str, None] = {}  # in order, each once
    sch = _first_program(mod, target, shipped_rules(target.kind) if rules is None else rules, notes)
    for note in notes:
        warn(note)
    return sch


def _first_program(
    mod: tvm.IRModule, target: Target, rules: Sequence[Rule], notes: dict[str, None]
) -> Any:
    for sketch in _one_by_one(mod, target, rules, notes):
        try:
            return sketch.program(Guess()).sch
        except TooMuchCodeError:  # noqa: PERF203 - rarely more than one
            if (found := sketch.excess(Guess())) is not None:
                rule, error = found
                notes[f"the rule {rule.name} {error}: the task is scheduled without it"] = None
                others = [other for other in rules if other is not rule]
                return _first_program(mod, target, others, notes)
        # ScheduleError, and what TVM's primitives raise where they did not think of a program.
        except (RuntimeError, ValueError) as error:
            heed(error)
    return tvm.s_tir.Schedule(mod, debug_mask="none")


def _one_by_one(
    mod: tvm.IRModule, target: Target, rules: Sequence[Rule], notes: dict[str, None]
) -> Iterator[Sketch]:
    """The task's first sketch, and all of them only where that is not enough."""
    for enough in (1, sys.maxsize):
        derivation = derive(mod, target, rules, enough)
        notes.update(dict.fromkeys(derivation.faults))
        yield from derivation.sketches


class _Enumeration:
    def __init__(self, mod: tvm.IRModule, target: Target, rules: Sequence[Rule]) -> None:
        self.mod, self.target, self.rules = mod, target, rules
        self.answers: dict[RuleAnswer, None] = {}  # in order, each once

    def run(self, enough: int) -> Iterator[Sketch]:
        """Visit the blocks; `_RuleError` at the first rule that breaks its contract."""
        start = _start(self.mod, Guess())
        for sketch in islice(self.visit(start, (), _names(start)), MAX_SKETCHES):
            yield sketch
            enough -= sketch.size
            if enough <= 0:
                return

    def visit(self, state: State, path: tuple[Step, ...], left: list[str]) -> Iterator[Sketch]:
        """Depth first: the first sketch found is the one that the first rules lead to."""
        if not left:
            yield from self._finished(state, path)
            return
        *rest, block = left
        if block in state.done or block not in _names(state):
            yield from self.visit(state, path, rest)
            return
        if sum(step.block == block for step in path) >= MAX_VISITS:
            raise _RuleError(path[-1].rule, block, "asks for it again without end")
        later: list[Rule] = []
        for rule in self.rules:
            answer = self._ask(rule, state, block)
            if isinstance(answer, Pass):
                continue
            if isinstance(answer, Apply) and answer.later:
                later.append(rule)
                continue
            derived = self._apply(rule, state, block)
            yield from self._onwards(derived, rule, path, left)
            while derived and later:
                one = later.pop(0)
                yield from self._onwards(self._apply(one, state, block), one, path, left)
            if derived and isinstance(answer, ApplyAndSkipRest):
                return
        for one in later:
            yield from self._onwards(self._apply(one, state, block), one, path, left)

    def _onwards(
        self, derived: list[State], rule: Rule, path: tuple[Step, ...], left: list[str]
    ) -> Iterator[Sketch]:
        """Visit what is left, given what a rule derived at the last of it."""
        *rest, block = left
        for branch, new in enumerate(derived):
            # A rewritten program is one of its own, of which no block was visited.
            before, onwards = path, left if new.revisit else rest
            if new.restarted:
                before, onwards = (), _names(new)
            new.revisit = new.restarted = False
            yield from self.visit(new, (*before, Step(block, rule, branch)), onwards)

    def _ask(self, rule: Rule, state: State, block: str) -> Pass | Apply | ApplyAndSkipRest:
        state.node = block
        try:
            answer = rule.applies(state, block, self.target)
        except Exception as error:
            heed(error)
            raise _RuleError(rule, block, _raised(error)) from error
        if not isinstance(answer, (Pass, Apply, ApplyAndSkipRest)):
            text = f"answered {reprlib.repr(answer)} instead of Pass(reason), Apply() or the like"
            raise _RuleError(rule, block, text)
        text = f"passes: {answer.reason}" if isinstance(answer, Pass) else "applies"
        self._note(block, rule.name, text)
        return answer

    def _apply(self, rule: Rule, state: State, block: str) -> list[State]:
        try:
            derived = rule.apply(state.copy(), block, self.target)
        except tvm.s_tir.ScheduleError as error:
            self._note(block, rule.name, f"does not fit: {_last_line(error)}")
            return []
        except Exception as error:
            heed(error)
            raise _RuleError(rule, block, _raised(error)) from error
        if not isinstance(derived, (list, tuple)) or not all(isinstance(s, State) for s in derived):
            text = f"derived {reprlib.repr(derived)} instead of a list of states"
            raise _RuleError(rule, block, text)
        return list(derived)

    def _finished(self, state: State, path: tuple[Step, ...]) -> Iterator[Sketch]:
        """The sketch of a path to the end, if the rest can be annotated."""
        whole = state.copy()
        try:
            annotate(whole, self.target)
        except (RuntimeError, ValueError) as error:
            heed(error)
            self._note("", "annotate", f"does not fit: {_last_line(error)}")
            return
        yield Sketch(self.mod, self.target, path, tuple(whole.decisions))

    def _note(self, block: str, rule: str, text: str) -> None:
        self.answers.setdefault(RuleAnswer(block, rule, text))


def _follow(step: Step, state: State, target: Target) -> State:
    """One step of a path. Whatever a user's rule raises, under some choices only, is a misfit."""
    state.node = step.block
    try:
        return list(step.rule.apply(state, step.block, target))[step.branch]
    except (RuntimeError, ValueError):
        raise
    except Exception as error:
        heed(error)
        raise ValueError(f"the rule {step.rule.name} {_raised(error)}") from error


def _start(mod: tvm.IRModule, chooser: Chooser) -> State:
    return State(tvm.s_tir.Schedule(mod, debug_mask="none"), chooser)


def _names(state: State) -> list[str]:
    """The blocks that are there, in order: some may have been inlined."""
    return [str(state.sch.get(block).name_hint) for block in blocks(state.sch)]


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {_last_line(error)}"


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
