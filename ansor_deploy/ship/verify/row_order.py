"""Reorder rows of outputs where rounding decides their order, since any order is right then.

A detector sorts its boxes by scores, many of which are nearly equal. Where the oracle with noise
gives the same rows in another order, a library may do so as well, if all outputs have the same
order. Models that sort nothing are left out: comparing all rows with all others can take a minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

Arrays = Mapping[str, np.ndarray]
_JUMP = 1e-3  # of an output's scale: rows that noise moves by less did not change places
_LEFT = 0.5  # a new order counts if it leaves less than this part of the distance from the oracle
_MOST_ROWS = 4096  # outputs with more rows are not reordered
_MOST_COLUMNS = 1024  # outputs with more elements in a row are not reordered


def in_order(
    actual: Arrays, expected: Arrays, samples: Sequence[Arrays]
) -> tuple[Arrays, list[Arrays]]:
    """The actual outputs and the samples, with rows in the order of the expected ones.

    They are left unchanged unless the new order brings the samples much nearer to the oracle's
    outputs. The axis of rows is one whose extent occurs in all outputs that noise moves far.
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
    """The sum of the distances of all elements of these outputs."""
    each = (_distance(one[name], expected[name], _scale(expected[name])) for name in names)
    return float(sum(distance.sum() for distance in each))


def _shared_axes(shapes: Mapping[str, tuple[int, ...]]) -> list[dict[str, int]]:
    """The axis of the rows by output, for each extent that all outputs have."""
    common = set.intersection(*map(set, shapes.values())) if shapes else set()
    columns = sum(int(np.prod(shape)) for shape in shapes.values())
    return [
        {name: shape.index(rows) for name, shape in shapes.items()}
        for rows in sorted(common)
        if 1 < rows <= _MOST_ROWS and columns <= rows * _MOST_COLUMNS
    ]


def _scale(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The scale of distances: the largest absolute value, along an axis if any; 1 for integers."""
    if not np.issubdtype(values.dtype, np.floating):
        return np.ones(())
    return np.abs(np.nan_to_num(values.astype(np.float64))).max(axis=axis, initial=1e-300)


def _distance(one: np.ndarray, other: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The distance of each element, relative to the scale, at most 1; it is 1 if not finite."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(one.astype(np.float64) - other) / scale
    return np.where(one == other, 0.0, np.minimum(np.nan_to_num(apart, nan=1.0), 1.0))


def _ordered(values: Arrays, expected: Arrays, axes: Mapping[str, int]) -> Arrays:
    """The outputs with rows ordered so that the sum of distances from the expected is least."""
    from scipy.optimize import linear_sum_assignment

    costs = sum(_costs(values[name], expected[name], axis) for name, axis in axes.items())
    _, order = linear_sum_assignment(costs)
    taken = {name: np.take(values[name], order, axis) for name, axis in axes.items()}
    return {**values, **taken}


def _costs(values: np.ndarray, expected: np.ndarray, axis: int) -> np.ndarray:
    """The distance of each expected row from each actual row."""
    rows, wanted = map(partial(_rows, axis=axis), (values, expected))
    scale = np.broadcast_to(_scale(wanted, axis=0), wanted.shape[1:])
    costs = np.zeros((len(wanted), len(rows)))
    for column, size in enumerate(scale):
        costs += _distance(wanted[:, column, None], rows[None, :, column], size)
    return costs


def _rows(values: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
