"""A user's rules run in a process of their own, which may end without ending the build.

A rule is untrusted code: it may loop, crash, exit or take all memory. `rule_server` runs it within
limits. It returns text only: paths of rules, and programs as traces, which are replayed here.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AnsorError, MachineError, UsageError
from ..system.worker import Worker, WorkerFailure
from .question import Chooser, Decision, Question

if TYPE_CHECKING:
    from ..target import Target
    from .rule import Rule

# Processor time of one call. A derivation by the shipped rules takes a tenth of a second.
PROCESSOR_SECONDS = 5.0
# Elapsed time of one call: PROCESSOR_SECONDS take as long beside ten other processes on a core.
SECONDS = 60.0

_SERVER = f"{__package__}.rule_server"

# A block, the name of a rule, and the number of one of the states that the rule derived.
Step = tuple[str, str, int]


class RuleEndedError(ValueError):
    """A rule has ended its process or ran for too long; it is not asked again."""

    def __init__(self, rule: str, block: str, text: str) -> None:
        super().__init__(f"the rule {rule} {text}")
        self.rule, self.block, self.text = rule, block, text


@dataclass(frozen=True)
class Derived:
    """A task's sketches, and the rules' answers as fields of `derivation.RuleAnswer`.

    sketches: for each, the path of its steps and the decisions of its default program.
    """

    sketches: list[tuple[list[Step], tuple[Decision, ...]]]
    answers: list[tuple[str, str, str, bool]]


class RuleProcess:
    """The process of some rules. It starts when needed, and again after a rule has ended it.

    heard: called with the name of a rule and a line that it printed; None to drop such lines.
    """

    def __init__(self) -> None:
        self.heard: Callable[[str, str], None] | None = None
        self.ended: dict[str, RuleEndedError] = {}
        self._unreported: list[RuleEndedError] = []
        self._running = ("", "")  # the user's rule, and the block, that was asked last
        self._handed_on = 0  # how many printed bytes of this call were handed on
        # Unbuffered, so that lines arrive while a rule runs, and those of a rule that crashes too.
        self._worker = Worker(_SERVER, {"TVM_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"})
        weakref.finalize(self, self._worker.close)

    def unreported(self) -> list[RuleEndedError]:
        """The rules that have ended their process since the last call of this method."""
        found, self._unreported = self._unreported, []
        return found

    def load(self, path: Path) -> tuple[str, list[str], str, str]:
        """Name, kinds, digest and docstring of a rule. UsageError where it cannot be loaded."""
        try:
            said = self._call("load", {"path": str(path.resolve())}, running=path.stem)
        except RuleEndedError as ended:
            hint = "correct the file, or take it out of the project's rules folder"
            raise UsageError(f"the rule cannot be loaded: it {ended.text}", hint, path) from ended
        if "error" in said:
            raise UsageError(said["error"], said["hint"], path, said["line"])
        return said["name"], said["kinds"], said["digest"], said["doc"]

    def derive(self, text: str, target: Target, rules: Sequence[Rule], enough: int) -> Derived:
        """The sketches that the rules derive for a task; RuleEndedError where one ends the process.

        text: the task's module as JSON. enough: derivation stops at this many programs.
        """
        asked = {"rules": [*map(_named, rules)], "enough": enough}
        said = self._call("derive", {**_payload(text, target), **asked})
        answers = [(block, rule, text, failed) for block, rule, text, failed in said["answers"]]
        sketches = [
            ([(block, rule, at) for block, rule, at in path], _decisions(guesses))
            for path, guesses in said["sketches"]
        ]
        return Derived(sketches, answers)

    def program(
        self, text: str, target: Target, path: Sequence[tuple[str, Rule, int]], chooser: Chooser
    ) -> tuple[str, tuple[Decision, ...]]:
        """The trace of a path's program, and its decisions.

        ValueError where the chooser's answers do not fit; RuleEndedError is one.
        """
        said = self._call("program", {**_payload(text, target), "path": _steps(path)}, chooser)
        return said["trace"], _decisions(said["decisions"])

    def excess(
        self, text: str, target: Target, path: Sequence[tuple[str, Rule, int]], chooser: Chooser
    ) -> tuple[str, str] | None:
        """The same as `Sketch.excess`: the rule's name, and the error's text."""
        said = self._call("excess", {**_payload(text, target), "path": _steps(path)}, chooser)
        return (said["rule"], said["text"]) if said else None

    def _call(
        self,
        function: str,
        payload: dict[str, Any],
        chooser: Chooser | None = None,
        running: str = "",
    ) -> Any:
        """The answer of the process. RuleEndedError names the rule that ran when the process ended.

        running: the rule to blame until a rule reports that it runs.
        """
        choosers = [] if chooser is None else [chooser]
        self._running, self._handed_on = (running, ""), 0

        def answer(asked: list[Any]) -> Any:
            match asked:
                case ["runs", rule, block]:
                    self._hand_on()
                    self._running = (str(rule), str(block))
                case ["fork", number]:
                    choosers.append(choosers[number].fork())
                    return len(choosers) - 1
                case ["answer", number, question]:
                    return choosers[number].answer(Question.from_json(question))
            return None

        try:
            limited = {**payload, "seconds": PROCESSOR_SECONDS}
            return self._worker.call(f"{_SERVER}:{function}", limited, SECONDS, answer)
        except WorkerFailure as failure:
            if failure.kind == "raised" and choosers:
                raise ValueError(failure.message) from failure
            raise self._blamed(_said(failure)) from failure
        except MachineError as fault:
            if not self._running[0]:
                raise
            raise self._blamed(f"ran into {fault.text}") from fault
        finally:
            self._hand_on()

    def _hand_on(self) -> None:
        """Hand on the lines that the running rule has printed."""
        if self.heard is None:
            return
        text = self._worker.printed(self._handed_on)
        self._handed_on += len(text)
        for line in text.decode(errors="replace").splitlines():
            self.heard(self._running[0], line)

    def _blamed(self, text: str) -> RuleEndedError:
        rule, block = self._running
        if not rule:
            raise AnsorError(f"the process of the rules {text}")
        ended = self.ended[rule] = RuleEndedError(rule, block, text)
        self._unreported.append(ended)
        return ended


@lru_cache(maxsize=1)
def rule_process(files: tuple[tuple[Path, str], ...]) -> RuleProcess:
    """The process of these files, given with their digests. A command has only one."""
    return RuleProcess()


def _said(failure: WorkerFailure) -> str:
    """How the rule failed, in words that follow its name."""
    if failure.kind == "timeout":
        return f"did not come back within {SECONDS:g} s"
    cause = failure.message.partition(":")[0]
    if cause == "SIGXCPU":
        return f"took more than {PROCESSOR_SECONDS:g} s of processor time"
    return f"ended its process ({cause})"


def _decisions(said: Sequence[Any]) -> tuple[Decision, ...]:
    return tuple(Decision(Question.from_json(one), index) for one, index in said)


def _payload(text: str, target: Target) -> dict[str, Any]:
    return {"text": text, "target": target.to_json()}


def _named(rule: Rule) -> list[str]:
    """A rule's name and, if it is a user's rule, its file."""
    return [rule.name, str(rule.path.resolve()) if rule.process else ""]


def _steps(path: Sequence[tuple[str, Rule, int]]) -> list[list[Any]]:
    return [[block, *_named(rule), branch] for block, rule, branch in path]
