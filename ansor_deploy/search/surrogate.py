"""The cheap first stage: ranks decisions of one task without building their programs.

A program and its features cost some 15 ms, a row of decisions microseconds. What was measured of
this task, and of others of its operator, tells which decisions are worth a program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .experience import Experience, Row

# Measured programs from which it is worth asking.
ENOUGH = 16
ROUNDS = 100
_PARAMETERS = {
    # Within a task alone: what two tasks' latencies have in common is not known.
    "objective": "rank:pairwise",
    # The first so many of a task are told from all others: the rest need no order.
    "lambdarank_pair_method": "topk",
    "lambdarank_num_pair_per_sample": 16,
    "max_depth": 4,
    "eta": 0.1,
    "min_child_weight": 1,
    "tree_method": "hist",
    "nthread": 1,
    "seed": 43,
    "verbosity": 0,
}


class Surrogate:
    """Trees over decisions that tell a task's fast programs from its slow ones.

    own: what was measured of the task. others: of its operator's other tasks.
    """

    def __init__(self, own: Experience, others: Sequence[Experience] = ()) -> None:
        import xgboost

        known = [one for one in (*others, own) if _best(one) < math.inf]
        rows = [row for one in known for row in one.rows]
        names = dict.fromkeys(name for row in rows for name in row)
        self._columns = {name: at for at, name in enumerate(names)}
        labels = np.concatenate([_labels(one) for one in known])
        data = xgboost.DMatrix(self._matrix(rows), label=labels, nthread=1)
        data.set_group([len(one.rows) for one in known])
        self._booster: Any = xgboost.train(_PARAMETERS, data, ROUNDS)

    def predict(self, rows: Sequence[Row]) -> np.ndarray:
        """A score for each program, the higher the faster; only the order means anything."""
        import xgboost

        if not rows:
            return np.zeros(0)
        return self._booster.predict(xgboost.DMatrix(self._matrix(rows), nthread=1))

    def _matrix(self, rows: Sequence[Row]) -> np.ndarray:
        found = np.full((len(rows), len(self._columns)), np.nan, dtype=np.float32)
        for at, row in enumerate(rows):
            for name, value in row.items():
                if name in self._columns:
                    found[at, self._columns[name]] = value
        return found


def worth_asking(experiences: Sequence[Experience]) -> bool:
    """Whether enough was measured, and not all of it failed."""
    measured = sum(len(one.rows) for one in experiences)
    return measured >= ENOUGH and any(_best(one) < math.inf for one in experiences)


def _best(one: Experience) -> float:
    return min(one.latencies, default=math.inf)


def _labels(one: Experience) -> np.ndarray:
    """Best latency over each one's own; 0 for failures."""
    return _best(one) / np.array(one.latencies)
