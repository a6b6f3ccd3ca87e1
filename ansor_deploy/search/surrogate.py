"""The cheap first stage: ranks decisions of one task without building their programs.

A program and its features cost some 15 ms, a row of decisions microseconds. What was measured of
this task, and of others of its operator, says which decisions are worth a program.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .experience import Experience, Row

ROUNDS = 100
_PARAMETERS = {
    # Within a task alone: what two tasks' latencies have in common is not known.
    "objective": "rank:pairwise",
    # The first so many of a task are ranked before all others: the rest need no order.
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
    """Trees over decisions that order a task's programs by their speed.

    others: what was measured of its operator's other tasks. enough: programs, of this task and
    of others, from which on it is trained.
    """

    def __init__(self, others: Sequence[Experience], enough: int) -> None:
        self._others, self._own = [one for one in others if one.best < math.inf], Experience([], [])
        self._enough = enough
        self._columns: dict[str, None] = {}  # names, in order
        self._theirs = self._learnt(self._others)  # thousands of rows, encoded once
        self._booster: Any = None

    @property
    def trained(self) -> bool:
        """Whether there is anything to predict with."""
        return self._booster is not None

    def add(self, row: Row, latency: float) -> None:
        """One measured program of the task. latency: seconds, infinite for a failure."""
        self._own.rows.append(row)
        self._own.latencies.append(latency)

    def update(self) -> None:
        """Train anew, once enough was measured."""
        own = [self._own] if self._own.best < math.inf else []
        known = [*self._others, *own]
        if not can_rank(known, self._enough):
            return
        import xgboost

        ours = self._learnt(own)
        new = len(self._columns) - self._theirs.shape[1]
        theirs = np.pad(self._theirs, ((0, 0), (0, new)), constant_values=np.nan)
        labels = np.concatenate([one.best / np.array(one.latencies) for one in known])
        data = xgboost.DMatrix(np.concatenate([theirs, ours]), label=labels, nthread=1)
        data.set_group([len(one.rows) for one in known])
        self._booster = xgboost.train(_PARAMETERS, data, ROUNDS)

    def predict(self, rows: Sequence[Row]) -> np.ndarray:
        """A score for each program, the higher the faster; only the order means anything."""
        if not rows or not self.trained:
            return np.zeros(len(rows))
        import xgboost

        return self._booster.predict(xgboost.DMatrix(self._matrix(rows), nthread=1))

    def _learnt(self, experiences: Sequence[Experience]) -> np.ndarray:
        """Their rows as a matrix that has a column for each of their names."""
        rows = [row for one in experiences for row in one.rows]
        self._columns |= dict.fromkeys(name for row in rows for name in row)
        return self._matrix(rows)

    def _matrix(self, rows: Sequence[Row]) -> np.ndarray:
        """[rows, columns] of float32; NaN where a row lacks a number."""
        found = [[row.get(name, math.nan) for name in self._columns] for row in rows]
        return np.array(found, dtype=np.float32).reshape(len(rows), len(self._columns))


def can_rank(experiences: Sequence[Experience], enough: int) -> bool:
    """Whether so many programs were measured, of tasks that have one which does not fail."""
    return sum(len(one.rows) for one in experiences if one.best < math.inf) >= enough
