"""Simpler schedules of a task, for where the best one costs the compiler too much."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..target import Target
from .default_schedule import default_module
from .rule import Rule, shipped_rules

# Rules that copy no statement and no data, from many to few.
_SIMPLER = (("inlined", ("always-inline", "skip")), ("plain", ("skip",)))


def schedules(
    mod: Any,
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[tuple[str, Any]]:
    """Names of schedules and a task's module under each, each simpler than the last.

    "default" is what the rules think best; "inlined" has its stages inlined, "plain" all of them,
    each parallel and vectorised; and "as it stands" has the loops of the program.
    rules, warn: as of `default_module`.
    """
    yield "default", default_module(mod, target, rules, warn)
    shipped = shipped_rules(target.kind)
    for name, kept in _SIMPLER:
        yield name, default_module(mod, target, [one for one in shipped if one.name in kept])
    yield "as it stands", mod
