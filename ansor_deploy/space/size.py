"""How many programs a task has: what its search can try at most."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..system.machine_fault import heed
from ..target import Target
from .question import Guess
from .rule import Rule
from .sketch import Sketch, derive


def programs(mod: Any, target: Target, rules: Sequence[Rule]) -> int:
    """About how many programs these rules derive for a task's module, at least one.

    Of each sketch it is the product of the options of its default program: other answers may lead
    to other questions, and some of the answers fit no program.
    """
    return max(1, sum(map(_of, derive(mod, target, rules).sketches)))


def _of(sketch: Sketch) -> int:
    try:
        return prod(one.question.size for one in sketch.program(Guess()).decisions)
    except Exception as error:  # noqa: BLE001 - as in `explain`: TVM raises what it happens to check
        heed(error)
        return 0
