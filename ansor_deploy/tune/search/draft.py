"""A draft of programs' speeds, from their features alone: what is known before any was measured.

Most programs of a large space compute a few numbers at a time, or one, where a vector has room for
sixteen. So the draft counts the steps of each statement, a vector of operations each. It ranks
random programs of tiled loops at 0.6 (Spearman), whatever the operator.
"""

from collections.abc import Sequence

import numpy as np

from ...target import Target

_NUMBER = 4  # bytes
# Columns of the features: operations of all kinds in a run, and what the vectors of a statement
# hold; each is the logarithm of one more than it counts.
_OPERATIONS, _LANES = slice(0, 16), 17


def draft(features: Sequence[np.ndarray], target: Target) -> np.ndarray:
    """float64 [programs]: logarithms of expected speeds, of which only differences mean anything.

    features: float32 [stores, 164] of each program. A GPU's threads have no vectors.
    """
    lanes = 1 if target.gpu else max(1, target.vector_bytes // _NUMBER)
    return np.array([-np.log(_steps(np.exp2(rows) - 1, lanes)) for rows in features], float)


def _steps(counts: np.ndarray, lanes: int) -> float:
    """What all statements take, in vectors of operations; at least one."""
    operations = counts[:, _OPERATIONS].sum(axis=1)
    return max(1.0, float((operations / counts[:, _LANES].clip(1, lanes)).sum()))
