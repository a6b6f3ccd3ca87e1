"""How many programs a task has: what its search can try at most."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..target import Target
from .derivation import derive
from .rule import Rule


def programs(mod: Any, target: Target, rules: Sequence[Rule], enough: int = sys.maxsize) -> int:
    """About how many programs these rules derive for a task's module, at least one.

    enough: counting ends there, before sketches are derived that make no difference.
    """
    return max(1, sum(sketch.size for sketch in derive(mod, target, rules, enough).sketches))
