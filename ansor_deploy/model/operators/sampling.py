"""The samples of a resized axis: which elements of the input they read, with what weights.

Coordinates and kernels are those of ONNX's Resize; the cubic kernel is that of Keys, "Cubic
convolution interpolation for digital image processing" (1981). The last bit of a coordinate halfway
between two elements, or at the edge of a region, decides which side it belongs to. So coordinates
are computed in float32, operation by operation, in the order of ONNX Runtime, which is the oracle.
ONNX Runtime also decides what ONNX leaves open: an axis with a scale of one does not change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

# A coordinate at most this far from the middle of two elements is taken for the middle, rounded.
_TIE = np.float32(1e-6)

# Applied to float32 coordinates in float64, where their differences are exact.
_ROUNDED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.where(_beyond_middle(x) > _TIE, np.ceil(x), np.floor(x)),
    "round_prefer_ceil": lambda x: np.where(_beyond_middle(x) < -_TIE, np.floor(x), np.ceil(x)),
    "floor": np.floor,
    "ceil": np.ceil,
}


@dataclass(frozen=True)
class Axis:
    """One axis that changes: `size` elements become `made`. region: the resized part, from 0 to 1.

    scale: as it was given; `made / size` may differ, since sizes are integers.
    """

    index: int
    size: int
    made: int
    scale: np.float32
    region: tuple[float, float] = (0.0, 1.0)

    @property
    def exact(self) -> bool:
        """Whether the scale equals the quotient of the sizes."""
        return float(self.scale) * self.size == self.made


@dataclass(frozen=True)
class Manner:
    """How values between elements are computed: ONNX's attributes of Resize.

    nearest: also "simple", as in old opsets: round up if the axis shrinks, else down.
    """

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    exclude_outside: bool
    antialias: bool


def coordinates(axis: Axis, manner: Manner) -> np.ndarray:
    """The float32 coordinate in the input of each element of the result, by ONNX's formula."""
    x = np.arange(axis.made, dtype=np.float32)
    if axis.scale == 1:
        return x
    where = _FORMULAS[manner.coordinates](x, axis).astype(np.float32)
    half = np.float32(0.5)
    return (where + half) - half if manner.antialias else where


def outside(axis: Axis, manner: Manner) -> np.ndarray:
    """Whether each element of the result is beyond the input."""
    where = coordinates(axis, manner)
    return np.asarray((where < 0) | (where > axis.size - 1))


def taps(axis: Axis, manner: Manner) -> tuple[np.ndarray, np.ndarray]:
    """(indices, weights): a row for each element of the result; indices are within the input."""
    if manner.antialias and axis.made == axis.size:
        return np.arange(axis.size)[:, None], np.ones((axis.size, 1))
    where = coordinates(axis, manner).astype(np.float64)
    if manner.mode == "nearest":
        found = _nearest(where, axis, manner)[:, None]
        weights = np.ones_like(found)
    else:
        shrunk = min(float(axis.scale), 1.0) if manner.antialias else 1.0
        reach = ceil((2 if manner.mode == "cubic" else 1) / shrunk)
        found = np.floor(where)[:, None] + np.arange(1 - reach, reach + 1)
        weights = _kernel(np.abs(found - where[:, None]) * shrunk, manner)
        if manner.exclude_outside:
            weights *= (found >= 0) & (found < axis.size)
        total = weights.sum(1, keepdims=True)
        weights /= np.where(total == 0, 1, total)  # the total is 0 if all taps are outside
    return np.clip(found, 0, axis.size - 1).astype(np.int64), weights


def _nearest(where: np.ndarray, axis: Axis, manner: Manner) -> np.ndarray:
    if manner.nearest == "simple":
        return np.ceil(where) if axis.scale < 1 else np.floor(where)
    return _ROUNDED[manner.nearest](where)


def _beyond_middle(where: np.ndarray) -> np.ndarray:
    """How far coordinates are beyond the middle of the two elements around them."""
    return where - np.floor(where) - 0.5


def _kernel(distance: np.ndarray, manner: Manner) -> np.ndarray:
    """The weights of elements at these distances."""
    if manner.mode == "linear":
        return np.maximum(0.0, 1.0 - distance)
    a, d = manner.cubic, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _half_pixel(x: np.ndarray, axis: Axis) -> np.ndarray:
    return (x + np.float32(0.5)) / axis.scale - np.float32(0.5)


def _pytorch_half_pixel(x: np.ndarray, axis: Axis) -> np.ndarray:
    return _half_pixel(x, axis) if axis.made > 1 else np.zeros_like(x)


def _half_pixel_symmetric(x: np.ndarray, axis: Axis) -> np.ndarray:
    """The formula as a float64 sum of float32 parts."""
    size, made = np.float32(axis.size), np.float32(axis.made)
    shift = size / np.float32(2) * (np.float32(1) - made / (axis.scale * size))
    return np.float64(shift) + (x.astype(np.float64) + 0.5) / np.float64(axis.scale) - 0.5


def _align_corners(x: np.ndarray, axis: Axis) -> np.ndarray:
    if axis.made == 1:
        return np.zeros_like(x)
    return x * np.float32(axis.size - 1) / np.float32(axis.made - 1)


def _crop_and_resize(x: np.ndarray, axis: Axis) -> np.ndarray:
    begin, end = map(np.float32, axis.region)
    last = np.float32(axis.size - 1)
    if axis.made == 1:
        return np.full(1, 0.5 * np.float64(begin + end) * np.float64(last))
    return begin * last + (x * (end - begin) * last) / np.float32(axis.made - 1)


_FORMULAS: dict[str, Callable[[np.ndarray, Axis], np.ndarray]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": lambda x, axis: x / axis.scale,
    "tf_half_pixel_for_nn": lambda x, axis: (x + np.float32(0.5)) / axis.scale,
    "tf_crop_and_resize": _crop_and_resize,
}
COORDINATES = frozenset(_FORMULAS)
ROUNDINGS = frozenset(_ROUNDED)
