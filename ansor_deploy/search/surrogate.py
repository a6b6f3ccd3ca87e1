"""The cheap first stage: ranks decisions of one task without building their programs.

A program and its features cost some 15 ms, a row of decisions microseconds. What was measured of
this task tells which decisions are worth a program; the cost model then ranks the programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .genome import Genome

# Measured programs of the task from which it is worth asking.
ENOUGH = 16
ROUNDS = 30
_PARAMETERS = {
    "max_depth": 4,
    "eta": 0.3,
    "min_child_weight": 0,
    "tree_method": "hist",
    "max_bin": 32,
    "nthread": 1,
    "seed": 43,
    "verbosity": 0,
}


class Surrogate:
    """Trees over decisions, learnt from labels in [0, 1], the higher the faster."""

    def __init__(self, genomes: Sequence[Genome], labels: Sequence[float]) -> None:
        import xgboost

        self._width = max(len(_row(genome)) for genome in genomes)
        weights = np.maximum(labels, 0.1)
        data = xgboost.DMatrix(
            self._rows(genomes), label=np.array(labels), weight=weights, nthread=1
        )
        self._booster: Any = xgboost.train(_PARAMETERS, data, ROUNDS)

    def predict(self, genomes: Sequence[Genome]) -> np.ndarray:
        """A score for each genome, the higher the faster."""
        import xgboost

        if not genomes:
            return np.zeros(0)
        return self._booster.predict(xgboost.DMatrix(self._rows(genomes), nthread=1))

    def _rows(self, genomes: Sequence[Genome]) -> np.ndarray:
        rows = np.full((len(genomes), self._width), np.nan, dtype=np.float32)
        for at, genome in enumerate(genomes):
            values = _row(genome)[: self._width]
            rows[at, : len(values)] = values
        return rows


def _row(genome: Genome) -> list[float]:
    """The sketch, then each choice's index and the logarithm of each tile's factors."""
    row = [float(genome.sketch)]
    for decision in genome.decisions:
        if isinstance(decision.value, tuple):
            row += [math.log2(factor) for factor in decision.value]
        else:
            row.append(float(decision.value))
    return row
