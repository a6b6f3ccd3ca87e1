"""Derivation rules: their contract, and loading them from files.

A rule is one Python file with

    NAME = "register-tile"                       # its name in explanations
    KINDS = ("llvm",)                            # kinds of target that it serves
    def applies(state, block, target): ...       # Pass(reason), Apply() or ApplyAndSkipRest()
    def apply(state, block, target): ...         # the states that it derives, usually one

`block` is the name of a block of `state.sch`, a TVM schedule. Every free choice is made through
`state.choose` and `state.sample_tile`, so that a search can decide it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..registry.forms import MOST_NAME
from ..system.digest import sha256
from ..system.regular_file import read_regular
from .rule_files import file_digest, shipped_files
from .rule_process import RuleProcess, rule_process

RULE_MODULE = "ansor_deploy_rule_"  # prefix of the names of rules' modules
_MOST_BYTES = 1 << 20

if TYPE_CHECKING:
    from ..target import Target
    from .state import State


@dataclass(frozen=True)
class Pass:
    """The rule does not apply. reason: why, in words that complete "passes: it ..."."""

    reason: str


@dataclass(frozen=True)
class Apply:
    """The rule derives states, and the rules after it are tried as well.

    later: its structures come after those of the next rule that applies, which gives the default.
    """

    later: bool = False


@dataclass(frozen=True)
class ApplyAndSkipRest:
    """The rule derives states, and no rule after it is tried on this block."""


@dataclass(frozen=True)
class Rule:
    """A loaded rule. digest: SHA-256 of its file. doc: the file's docstring, or "".

    process: the process that a user's rule runs in; None for a rule that runs in this process.
    """

    name: str
    kinds: tuple[str, ...]
    path: Path
    digest: str = field(repr=False)
    applies: Callable[[State, str, Target], Pass | Apply | ApplyAndSkipRest] = field(repr=False)
    apply: Callable[[State, str, Target], Sequence[State]] = field(repr=False)
    doc: str = field(default="", repr=False)
    process: RuleProcess | None = field(default=None, repr=False, compare=False)

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring on one line."""
        return " ".join(self.doc.strip().split("\n\n")[0].split())


def rule_set(
    files: Sequence[Path],
    kind: str,
    precision: str = "default",
    heard: Callable[[str, str], None] | None = None,
) -> list[Rule]:
    """The rules that are asked for a kind of target, in order.

    files: the user's rules, asked before the shipped ones; they run in a process of their own.
    precision: "strict" leaves out shipped rules that rewrite. heard: called with the name of a
    user's rule and a line that it printed. UsageError as in `load_rule`.
    """
    process = rule_process(tuple((path, file_digest(path)) for path in files)) if files else None
    if process:
        process.heard = heard
    own = [_apart(process, path) for path in files] if process else []
    return before_shipped([rule for rule in own if kind in rule.kinds], kind, precision)


def before_shipped(own: Sequence[Rule], kind: str, precision: str = "default") -> list[Rule]:
    """These rules, then the shipped ones. Of two with one name only the earlier is kept.

    A user's rule therefore replaces the shipped rule of its name.
    """
    rules = [*own, *shipped_rules(kind, precision)]
    names = [rule.name for rule in rules]
    return [rule for at, rule in enumerate(rules) if rule.name not in names[:at]]


def _apart(process: RuleProcess, path: Path) -> Rule:
    name, kinds, digest, doc = process.load(path)
    return Rule(name, tuple(kinds), path, digest, _elsewhere, _elsewhere, doc, process)


def _elsewhere(*words: Any) -> Any:
    raise RuntimeError("a user's rule runs in a process of its own")


@cache
def shipped_rules(kind: str, precision: str = "default") -> tuple[Rule, ...]:
    """The rules shipped with the tool for a kind of target, as `order.toml` orders them.

    precision: "strict" leaves out rules that rewrite a computation.
    """
    return tuple(load_rules(shipped_files(kind, precision), kind))


def load_rules(files: Sequence[Path], kind: str) -> list[Rule]:
    """The rules of these files that serve a kind of target, in order."""
    return [rule for rule in map(load_rule, files) if kind in rule.kinds]


def load_rule(path: Path) -> Rule:
    """The rule of a file. UsageError if it cannot be run or does not keep the contract."""
    try:
        source = read_regular(path, _MOST_BYTES)
        module = _run(path, source)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the rule cannot be loaded: {type(error).__name__}: {error}",
            "correct the file, or take it out of the project's rules folder",
            path,
            error.lineno if isinstance(error, SyntaxError) else None,
        ) from error
    if broken := _broken(module):
        raise UsageError(broken, "docs/rules.md says what a rule's file must have", path)
    digest = hashlib.sha256(source).hexdigest()
    kinds, doc = tuple(module.KINDS), module.__doc__ or ""
    return Rule(module.NAME, kinds, path, digest, module.applies, module.apply, doc)


def _broken(module: Any) -> str:
    """How a rule's module breaks the contract; "" if it does not."""
    missing = [n for n in ("NAME", "KINDS", "applies", "apply") if not hasattr(module, n)]
    if missing:
        return f"a rule needs {', '.join(missing)}"
    name, kinds = module.NAME, module.KINDS
    if not (isinstance(name, str) and name.isprintable() and name.strip()):
        return f"NAME must be a line of text and is {name!r}"
    if len(name) > MOST_NAME:
        return f"NAME must be of {MOST_NAME} characters at most and has {len(name)}"
    if not isinstance(kinds, (tuple, list)) or not all(isinstance(kind, str) for kind in kinds):
        return f'KINDS must list kinds of target, such as ("llvm",), and is {kinds!r}'
    uncallable = [n for n in ("applies", "apply") if not callable(getattr(module, n))]
    return f"{uncallable[0]} must be a function" if uncallable else ""


def _run(path: Path, source: bytes) -> ModuleType:
    """The module of a file, compiled from its source and entered in `sys.modules` like an import.

    Bytecode is neither written beside a user's file nor read: Python judges it by file times only.
    """
    name = f"{RULE_MODULE}{sha256(str(path.resolve()))[:12]}"
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = str(path)
    try:
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))  # noqa: S102
    except BaseException:
        del sys.modules[name]
        raise
    return module
