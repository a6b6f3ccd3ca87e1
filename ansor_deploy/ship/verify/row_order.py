"""Rows in the order that fits: where rounding decides which comes first, any order is right.

A detector sorts its boxes by scores, many of which are as good as equal. Where the oracle itself,
with noise, gives the same rows in another order, so may a library: of all outputs alike. A model
that sorts nothing is not asked: to compare all rows with all others can take a minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

Arrays = Mapping[str, np.ndarray]
_JUMP = 1e-3  # of an output's scale: what noise moves by less was not exchanged
_LEFT = 0.5  # of the distance from the oracle's rows: an order that leaves more is none
_MOST_ROWS, _MOST_COLUMNS = 4096, 1024  # that are compared


def in_order(
    actual: Arrays, expected: Arrays, samples: Sequence[Arrays]
) -> tuple[Arrays, list[Arrays]]:
    """The actual outputs and the samples, with rows in the order of the expected ones.

    They stay as they are unless the samples come nearer so. Rows lie along an axis that all outputs
    have which noise moves far.
    """
    jumps = [name for name in expected if any(_jumps(one[name], expected[name]) for one in samples)]
    best, least = {}, _LEFT * sum(_apart(one, expected, jumps) for one in samples)
    for axes in _shared_axes({name: expected[name].shape for name in jumps}):
        ordered = [_ordered(one, expected, axes) for one in samples]
        left = sum(_apart(one, expected, jumps) for one in ordered)
        if left < least:
            best, least = axes, left
    if not best:
        return actual, list(samples)
    return _ordered(actual, expected, best), [_ordered(one, expected, best) for one in samples]


def _jumps(one: np.ndarray, expected: np.ndarray) -> bool:
    return one.size > 0 and bool(_distance(one, expected, _scale(expected)).max() > _JUMP)


def _apart(one: Arrays, expected: Arrays, names: Sequence[str]) -> float:
    """The distances of all elements of these outputs, in all."""
    each = (_distance(one[name], expected[name], _scale(expected[name])) for name in names)
    return float(sum(distance.sum() for distance in each))


def _shared_axes(shapes: Mapping[str, tuple[int, ...]]) -> list[dict[str, int]]:
    """By output, the axis of the rows: once for each extent that all of them have."""
    common = set.intersection(*map(set, shapes.values())) if shapes else set()
    columns = sum(int(np.prod(shape)) for shape in shapes.values())
    return [
        {name: shape.index(rows) for name, shape in shapes.items()}
        for rows in sorted(common)
        if 1 < rows <= _MOST_ROWS and columns <= rows * _MOST_COLUMNS
    ]


def _scale(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """What is far apart: the largest element's size, of a column if there is an axis; or one."""
    if not np.issubdtype(values.dtype, np.floating):
        return np.ones(())
    return np.abs(np.nan_to_num(values.astype(np.float64))).max(axis=axis, initial=1e-300)


def _distance(one: np.ndarray, other: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Of each element, of the scale, and at most one; what is not finite is far from all else."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(one.astype(np.float64) - other) / scale
    return np.where(one == other, 0.0, np.minimum(np.nan_to_num(apart, nan=1.0), 1.0))


def _ordered(values: Arrays, expected: Arrays, axes: Mapping[str, int]) -> Arrays:
    """The outputs with rows so that the sum of their distances from the expected ones is least."""
    from scipy.optimize import linear_sum_assignment

    costs = sum(_costs(values[name], expected[name], axis) for name, axis in axes.items())
    _, order = linear_sum_assignment(costs)
    taken = {name: np.take(values[name], order, axis) for name, axis in axes.items()}
    return {**values, **taken}


def _costs(values: np.ndarray, expected: np.ndarray, axis: int) -> np.ndarray:
    """The distance of each expected row from each row there is."""
    rows, wanted = map(partial(_rows, axis=axis), (values, expected))
    scale = np.broadcast_to(_scale(wanted, axis=0), wanted.shape[1:])
    costs = np.zeros((len(wanted), len(rows)))
    for column, size in enumerate(scale):
        costs += _distance(wanted[:, column, None], rows[None, :, column], size)
    return costs


def _rows(values: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
