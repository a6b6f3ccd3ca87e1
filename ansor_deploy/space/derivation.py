"""Derivation: the sketches that the rules lead to (Ansor, section 4.1).

Blocks are visited from the output backwards. At each block the rules are asked in order. A rule
that applies derives new states; the next rule is asked too, unless the answer says to skip the
rest. Blocks that no rule has finished are annotated at the end.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from .._tvm import tvm
from ..system.machine_fault import raise_if_fault
from ..system.words import last_line
from ..target import Target
from .annotate import annotate
from .block_view import blocks
from .question import Guess
from .rule import Apply, ApplyAndSkipRest, Pass, Rule
from .rule_process import RuleEndedError, RuleProcess
from .sketch import Program, Sketch, Step, process_of, raised, start
from .state import State

# Most sketches of a task, which ends endless branching. Ansor has "fewer than 10 for a typical
# subgraph".
MAX_SKETCHES = 32
# Most visits of a block; it ends a rule that asks for its block forever. A cache stage takes two.
MAX_VISITS = 8


@dataclass(frozen=True)
class RuleAnswer:
    """One rule's answer about one block.

    text: "applies", or why the rule does not, or how it failed. failed: the rule broke its contract
    and was left out.
    """

    block: str
    rule: str
    text: str
    failed: bool = False


@dataclass(frozen=True)
class Derivation:
    """The sketches of a task, in the order found, and all answers of the rules on the way.

    first: the default program of the first sketch; None where another process derived the sketch.
    """

    sketches: tuple[Sketch, ...]
    answers: tuple[RuleAnswer, ...]
    first: Program | None = field(default=None, repr=False, compare=False)

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
    """The sketches of a task's program, derived without any rule that breaks its contract.

    If there are rules of the user, a process of their own asks all rules, the shipped ones too.
    enough: derivation stops at the sketch with which the sketches have this many programs together.
    """
    if process := process_of(rules):
        return _derived_apart(process, mod, target, rules, enough)
    search = _Enumeration(mod, target, rules)
    try:
        sketches = tuple(search.run(enough))
    except _RuleError as error:
        others = derive(mod, target, [rule for rule in rules if rule is not error.rule], enough)
        return Derivation(others.sketches, (error.answer, *others.answers), others.first)
    return Derivation(sketches, tuple(search.answers), search.first)


def _derived_apart(
    process: RuleProcess, mod: tvm.IRModule, target: Target, rules: Sequence[Rule], enough: int
) -> Derivation:
    """Derive in the process of these rules, without those that have ended it."""
    asked = [rule for rule in rules if rule.name not in process.ended]
    if process_of(asked) is None:
        found = derive(mod, target, asked, enough)
        return Derivation(found.sketches, (*_ended(process), *found.answers), found.first)
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
    """A sentence for each rule that has ended its process and that no derivation reported yet."""
    process = process_of(rules)
    return [_sentence(one) for one in _ended(process)] if process else []


def _ended(process: RuleProcess) -> list[RuleAnswer]:
    return [RuleAnswer(one.block, one.rule, one.text, failed=True) for one in process.unreported()]


def _sentence(answer: RuleAnswer) -> str:
    at = f" at block {answer.block}" if answer.block else ""
    return f"the rule {answer.rule} {answer.text}{at}, and is left out"


class _Enumeration:
    def __init__(self, mod: tvm.IRModule, target: Target, rules: Sequence[Rule]) -> None:
        self.mod, self.target, self.rules = mod, target, rules
        self.answers: dict[RuleAnswer, None] = {}  # in order, each once
        self.first: Program | None = None

    def run(self, enough: int) -> Iterator[Sketch]:
        """Visit the blocks. Raises `_RuleError` at the first rule that breaks its contract."""
        state = start(self.mod, Guess())
        for sketch in islice(self.visit(state, (), _names(state)), MAX_SKETCHES):
            yield sketch
            enough -= sketch.size
            if enough <= 0:
                return

    def visit(self, state: State, path: tuple[Step, ...], left: list[str]) -> Iterator[Sketch]:
        """Visit depth first, so that the first sketch comes from the first rules that apply."""
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
        """Visit the rest of the blocks for each state that a rule derived at the last one."""
        *rest, block = left
        for branch, new in enumerate(derived):
            # A rewritten program is a new one: none of its blocks has been visited.
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
            raise_if_fault(error)
            raise _RuleError(rule, block, raised(error)) from error
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
            self._note(block, rule.name, f"does not fit: {last_line(error)}")
            return []
        except Exception as error:
            raise_if_fault(error)
            raise _RuleError(rule, block, raised(error)) from error
        if not isinstance(derived, (list, tuple)) or not all(isinstance(s, State) for s in derived):
            text = f"derived {reprlib.repr(derived)} instead of a list of states"
            raise _RuleError(rule, block, text)
        return list(derived)

    def _finished(self, state: State, path: tuple[Step, ...]) -> Iterator[Sketch]:
        """The sketch of a complete path, if its unfinished blocks can be annotated."""
        whole = state.copy()
        try:
            annotate(whole, self.target)
        except (RuntimeError, ValueError) as error:
            raise_if_fault(error)
            self._note("", "annotate", f"does not fit: {last_line(error)}")
            return
        sketch = Sketch(self.mod, self.target, path, tuple(whole.decisions))
        self.first = self.first or Program(sketch, whole.sch, sketch.guesses)
        yield sketch

    def _note(self, block: str, rule: str, text: str) -> None:
        self.answers.setdefault(RuleAnswer(block, rule, text))


def _names(state: State) -> list[str]:
    """Names of the blocks that exist now, in order: some may have been inlined."""
    return [str(state.sch.get(block).name_hint) for block in blocks(state.sch)]


def programs(
    mod: tvm.IRModule, target: Target, rules: Sequence[Rule], enough: int = sys.maxsize
) -> int:
    """About how many programs these rules derive for a task's module, at least one.

    enough: counting stops at this number, so that no more sketches are derived than needed.
    """
    return max(1, sum(sketch.size for sketch in derive(mod, target, rules, enough).sketches))
