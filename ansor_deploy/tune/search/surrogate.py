"""The surrogate, a cheap first stage: it ranks decisions of one task without building programs.

A program and its features cost some 15 ms, a row of decisions microseconds. The measurements of
this task, and of others with its operator, show which decisions are worth a program.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .experience import Experience, Row

ROUNDS = 100  # trees
OTHERS = 0.3  # weight of a program of another task
_PARAMETERS = {
    "max_depth": 4,
    "eta": 0.1,
    "min_child_weight": 1,
    # Without sampling, all trees of a few dozen programs would be alike.
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

    Labels are logarithms of speeds minus their mean in each task, since latencies of different
    tasks cannot be compared.

    others: the measurements of other tasks with the operator. enough: how many programs, of this
    task and of others, are needed for training.
    """

    def __init__(self, others: Sequence[Experience], enough: int) -> None:
        self._others, self._own = [one for one in others if one.best < math.inf], Experience([], [])
        self._enough = enough
        self._columns: dict[str, None] = {}  # names, in order
        self._theirs = self._learnt(self._others)  # thousands of rows, encoded once
        self._booster: Any = None

    @property
    def trained(self) -> bool:
        """Whether there is a model to predict with."""
        return self._booster is not None

    def add(self, row: Row, latency: float) -> None:
        """Add a measured program of the task. latency: seconds, infinite for a failure."""
        self._own.rows.append(row)
        self._own.latencies.append(latency)

    def update(self) -> None:
        """Train the trees, if enough was measured."""
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
        """Logarithms of programs' speeds minus the mean of the measured ones, [rows]."""
        if not rows or not self.trained:
            return np.zeros(len(rows))
        import xgboost

        return self._booster.predict(xgboost.DMatrix(self._matrix(rows), nthread=1))

    def _learnt(self, experiences: Sequence[Experience]) -> np.ndarray:
        """The rows of experiences as a matrix; new names of numbers become columns."""
        rows = [row for one in experiences for row in one.rows]
        self._columns |= dict.fromkeys(name for row in rows for name in row)
        return self._matrix(rows)

    def _matrix(self, rows: Sequence[Row]) -> np.ndarray:
        """[rows, columns] of float32; NaN where a row lacks a number."""
        found = [[row.get(name, math.nan) for name in self._columns] for row in rows]
        return np.array(found, dtype=np.float32).reshape(len(rows), len(self._columns))


def _labels(latencies: Sequence[float]) -> np.ndarray:
    """Logarithms of speeds minus their mean; a failure counts as twice the slowest time."""
    times = np.array(latencies)
    slowest = times[np.isfinite(times)].max()
    logs = np.log(np.where(np.isfinite(times), times, 2 * slowest))
    return np.asarray(logs.mean() - logs)


def can_rank(experiences: Sequence[Experience], enough: int) -> bool:
    """Whether enough programs were measured, counting tasks with at least one that did not fail."""
    return sum(len(one.rows) for one in experiences if one.best < math.inf) >= enough
