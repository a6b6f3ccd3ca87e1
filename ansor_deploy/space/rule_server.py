"""The process that a user's rules run in: it loads them, derives sketches and makes programs.

`rule_process` is its client. If a rule ends this process, nothing else ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any

from .._tvm import tvm
from ..errors import UsageError
from ..system.child import ask
from ..system.limits import limit_files, limit_memory, limit_processor
from ..target import Target, target_of
from .derivation import derive as derive_here
from .question import Chooser, Decision, Question
from .rule import Rule, load_rule, shipped_rules
from .sketch import Sketch, Step
from .trace import dump

_FILE_BYTES = 16 << 20  # most bytes that a rule may write to a file, or print


def _limited(function: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """Run a function within the limits of one call. payload: also "seconds" of processor time."""

    @wraps(function)
    def call(payload: dict[str, Any]) -> Any:
        limit_memory(0)
        limit_processor(payload["seconds"])
        limit_files(_FILE_BYTES)
        return function(payload)

    return call


@_limited
def load(payload: dict[str, Any]) -> dict[str, Any]:
    """Name, kinds, digest and docstring of a rule, or why it cannot be loaded. payload: "path"."""
    try:
        rule = _loaded(Path(payload["path"]))
    except UsageError as error:
        return {"error": error.text, "hint": error.hint, "line": error.line}
    return {"name": rule.name, "kinds": rule.kinds, "digest": rule.digest, "doc": rule.doc}


@_limited
def derive(payload: dict[str, Any]) -> dict[str, Any]:
    """A task's sketches, as paths with the decisions of default programs, and the rules' answers.

    payload: the module's "text", the "target", how many programs are "enough", and the "rules":
    each one's name and, for a user's rule, its file.
    """
    mod, target = _module(payload["text"]), _target(payload)
    rules = [_rule(*one, target.kind) for one in payload["rules"]]
    found = derive_here(mod, target, rules, payload["enough"])
    sketches = [
        ([(s.block, s.rule.name, s.branch) for s in one.path], _decided(one.guesses))
        for one in found.sketches
    ]
    return {"sketches": sketches, "answers": [astuple(one) for one in found.answers]}


@_limited
def program(payload: dict[str, Any]) -> dict[str, Any]:
    """A program of a path. payload: as for `derive`, with a "path" instead of "rules"."""
    made = _sketch(payload).derived(_Asked())
    return {"trace": dump(made.sch.trace), "decisions": _decided(made.decisions)}


@_limited
def excess(payload: dict[str, Any]) -> dict[str, str] | None:
    """The rule of a path that makes a program too much code. payload: as for `program`."""
    found = _sketch(payload).excess(_Asked())
    return {"rule": found[0].name, "text": str(found[1])} if found else None


class _Asked(Chooser):
    """Answers with the answers of a chooser in the client's process."""

    def __init__(self, number: int = 0) -> None:
        self._number = number

    def answer(self, question: Question) -> int:
        """The index that it answers; ValueError where none of the options is acceptable."""
        return int(ask(["answer", self._number, question.to_json()]))

    def fork(self) -> Chooser:
        """A chooser that asks a fork of the client's chooser."""
        return _Asked(ask(["fork", self._number]))


def _decided(decisions: Sequence[Decision]) -> list[tuple[dict[str, Any], int]]:
    return [(one.question.to_json(), one.index) for one in decisions]


def _sketch(payload: dict[str, Any]) -> Sketch:
    target = _target(payload)
    path = [
        Step(block, _rule(name, file, target.kind), branch)
        for block, name, file, branch in payload["path"]
    ]
    return Sketch(_module(payload["text"]), target, tuple(path))


@lru_cache(maxsize=4)
def _module(text: str) -> Any:
    return tvm.ir.load_json(text)


def _target(payload: dict[str, Any]) -> Target:
    return target_of(json.dumps(payload["target"]))


@cache
def _loaded(path: Path) -> Rule:
    """A user's rule that reports when it runs, so that the client knows which ended the process."""
    rule = load_rule(path)

    def applies(state: Any, block: str, target: Target) -> Any:
        ask(["runs", rule.name, block])
        return rule.applies(state, block, target)

    def apply(state: Any, block: str, target: Target) -> Any:
        ask(["runs", rule.name, block])
        return rule.apply(state, block, target)

    return replace(rule, applies=applies, apply=apply)


@cache
def _rule(name: str, file: str, kind: str) -> Rule:
    if file:
        return _loaded(Path(file))
    return next(rule for rule in shipped_rules(kind) if rule.name == name)
