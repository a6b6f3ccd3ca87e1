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
OTHERS = 0.3  # weight of a program of another task
_PARAMETERS = {
    "max_depth": 4,
    "eta": 0.1,
    "min_child_weight": 1,
    # Of a few dozen programs all trees would be alike.
    "subsample": 0.8,
    "colsample_bytree": 0.5,
    "base_score": 0.0,
    "tree_method": "hist",
    "nthread": 1,
    "seed": 43,
    "verbosity": 0,
}


class Surrogate:
    """Trees over decisions that predict the speed of a task's programs.

    Labels are logarithms of speeds, in each task beside their mean: what two tasks' latencies have
    in common is not known.

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
        labels = np.concatenate([_labels(one.latencies) for one in known])
        weights = np.repeat([OTHERS, 1.0], [len(theirs), len(ours)])
        rows = np.concatenate([theirs, ours])
        data = xgboost.DMatrix(rows, label=labels, weight=weights, nthread=1)
        self._booster = xgboost.train(_PARAMETERS, data, ROUNDS)

    def predict(self, rows: Sequence[Row]) -> np.ndarray:
        """[rows]: logarithms of programs' speeds, beside the mean of those that were measured."""
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


def _labels(latencies: Sequence[float]) -> np.ndarray:
    """Logarithms of speeds beside their mean; a failure counts as twice the slowest that ran."""
    times = np.array(latencies)
    slowest = times[np.isfinite(times)].max()
    logs = np.log(np.where(np.isfinite(times), times, 2 * slowest))
    return np.asarray(logs.mean() - logs)


def can_rank(experiences: Sequence[Experience], enough: int) -> bool:
    """Whether so many programs were measured, of tasks that have one which does not fail."""
    return sum(len(one.rows) for one in experiences if one.best < math.inf) >= enough
