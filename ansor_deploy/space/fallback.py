"""Simpler schedules of a task, for use where the compiler cannot cope with the default one."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..target import Target
from .default_schedule import default_module
from .rule import Rule, shipped_rules

# Sets of rules that copy neither statements nor data; each set is simpler than the one before it.
_SIMPLER = (("inlined", ("always-inline", "skip")), ("plain", ("skip",)))


def schedules(
    mod: Any,
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[tuple[str, Any]]:
    """Names of schedules, each with the task's module under it, and each simpler than the last.

    "default" is the default schedule. "inlined" inlines elementwise stages, "plain" keeps all
    stages; both make the stages parallel and vectorise them. "as it stands" is the task's own
    program. rules, warn: as in `default_module`.
    """
    yield "default", default_module(mod, target, rules, warn)
    shipped = shipped_rules(target.kind)
    for name, kept in _SIMPLER:
        yield name, default_module(mod, target, [one for one in shipped if one.name in kept])
    yield "as it stands", mod
