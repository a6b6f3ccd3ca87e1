"""The reason recorded for a search that a budget ended.

It names the budget, so that a larger one continues the search.
"""

from __future__ import annotations

import math
import re

from ..request import Budget

_REASON = r"budget(?: of)?(?: (\d+) trials)?(?: and)?(?: (\d+) ms)?"


def budget_reason(budget: Budget) -> str:
    """The reason that a registry keeps, such as "budget of 10 trials and 15000 ms"."""
    parts = []
    if budget.trials is not None:
        parts.append(f"{budget.trials} trials")
    if budget.seconds is not None:
        parts.append(f"{round(budget.seconds * 1e3)} ms")
    return f"budget of {' and '.join(parts)}" if parts else "budget"


def is_larger(budget: Budget, reason: str) -> bool:
    """Whether a budget allows more trials or more time than the one that a reason names.

    False where the reason is not a budget.
    """
    if not (match := re.fullmatch(_REASON, reason)):
        return False
    trials = math.inf if match[1] is None else int(match[1])
    seconds = math.inf if match[2] is None else int(match[2]) * 1e-3
    return _or_all(budget.trials) > trials or _or_all(budget.seconds) > seconds


def _or_all(limit: float | None) -> float:
    return math.inf if limit is None else limit
