"""Resize and Upsample: each axis by itself, its samples and their weights computed beforehand.

A result along an axis is a weighted sum of a few elements, and shapes are static: which ones, and
their weights, are constants. Coordinates and kernels are those of ONNX's Resize; the cubic kernel
is that of Keys, "Cubic convolution interpolation for digital image processing" (1981).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from onnx import TensorProto

from ..graph import FLOATS
from .emitter import Emitter, expansion

_FEW = 4  # taps that are added one by one; more are a product with a matrix
_EXACT_NEAREST = (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))
_ROUNDED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@dataclass(frozen=True)
class Axis:
    """One axis that changes: `size` elements become `made`. region: of it that is resized, 0 to 1.

    scale: as it was given; `made / size` may differ, since sizes are whole numbers.
    """

    index: int
    size: int
    made: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)

    @property
    def exact(self) -> bool:
        """Whether the scale is what the sizes come to."""
        return self.scale * self.size == self.made


@dataclass(frozen=True)
class Manner:
    """How elements between others are computed: ONNX's attributes of Resize."""

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    exclude_outside: bool
    antialias: bool


@expansion("Upsample")
@expansion("Resize", since=10)
def resize(emit: Emitter) -> str | None:
    """One gather of each axis for the nearest element, else a weighted sum of gathers."""
    manner, axes = _manner(emit), _axes(emit)
    if _is_plain(emit, manner, axes):
        return None
    kind = emit.dtype(emit.input(0))
    if manner.mode != "nearest" and kind not in FLOATS:
        raise emit.refuse("only floating-point numbers can be interpolated")
    result = emit.input(0)
    for axis in axes:
        result = _along(emit, result, axis, manner, kind)
    return _extrapolated(emit, result, axes, manner, kind)


def _manner(emit: Emitter) -> Manner:
    old = emit.graph.opset < 11  # then Resize was what Upsample is
    return Manner(
        emit.attribute("mode", "nearest"),
        "asymmetric" if old else emit.attribute("coordinate_transformation_mode", "half_pixel"),
        "floor" if old else emit.attribute("nearest_mode", "round_prefer_floor"),
        emit.attribute("cubic_coeff_a", -0.75),
        bool(emit.attribute("exclude_outside", 0)),
        bool(emit.attribute("antialias", 0)),
    )


def _axes(emit: Emitter) -> list[Axis]:
    """The axes that change or are cropped."""
    shape = emit.shape(emit.input(0))
    named = emit.attribute("axes") or range(len(shape))
    places = [int(index) % len(shape) for index in named]
    scales, made = _extents(emit, [shape[index] for index in places])
    cropped = emit.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
    roi = _constant(emit, 1) if cropped else None
    regions = [(0.0, 1.0)] * len(places) if roi is None else np.reshape(roi, (2, -1)).T.tolist()
    axes = [
        Axis(index, shape[index], made[at], scales[at], regions[at])
        for at, index in enumerate(places)
    ]
    return [one for one in axes if (one.size, 1.0) != (one.made, one.scale) or cropped]


def _extents(emit: Emitter, shape: list[int]) -> tuple[list[float], list[int]]:
    """Scales and sizes of the result."""
    old = emit.graph.opset < 11
    scales = _constant(emit, 1 if old else 2)
    if scales is None and emit.attribute("scales"):
        scales = np.asarray(emit.attribute("scales"))
    if scales is not None and scales.size:
        return list(map(float, scales)), [
            floor(float(s) * n) for s, n in zip(scales, shape, strict=True)
        ]
    sizes = _constant(emit, 3)
    if sizes is None:
        raise emit.refuse("scales or sizes must be constant")
    policy = emit.attribute("keep_aspect_ratio_policy", "stretch")
    ratios = [int(size) / n for size, n in zip(sizes, shape, strict=True)]
    if policy == "stretch":
        return ratios, [int(size) for size in sizes]
    kept = min(ratios) if policy == "not_larger" else max(ratios)
    return [kept] * len(shape), [floor(kept * n + 0.5) for n in shape]


def _constant(emit: Emitter, index: int) -> np.ndarray | None:
    name = emit.input(index)
    value = emit.graph.value(name) if name else None
    if name and value is None:
        raise emit.refuse(f"its input '{name}' must be a constant")
    return value


def _is_plain(emit: Emitter, manner: Manner, axes: list[Axis]) -> bool:
    """Whether TVM's operator does it, and exactly: images in batches and channels."""
    shape, kind = emit.shape(emit.input(0)), emit.dtype(emit.input(0))
    whole = all(axis.index > 1 and axis.exact and axis.made > 1 for axis in axes)
    attributes = {entry.name for entry in emit.node.attribute}
    special = {"antialias", "axes", "keep_aspect_ratio_policy", "exclude_outside"} & attributes
    old = emit.graph.opset < 11
    if len(shape) != 4 or not whole or special or kind not in FLOATS or old:
        return False
    if manner.mode == "nearest":
        exact = (manner.coordinates, manner.nearest) in _EXACT_NEAREST
        return exact and all(axis.scale.is_integer() for axis in axes)
    known = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    return manner.mode == "linear" and manner.coordinates in known


def coordinates(axis: Axis, kind: str) -> np.ndarray:
    """Where each element of the result lies in the input, by ONNX's formula of that name."""
    x, size, made = np.arange(axis.made, dtype=np.float64), axis.size, axis.scale * axis.size
    begin, end = axis.region
    centred = (x + 0.5) / axis.scale - 0.5
    if kind == "align_corners":
        return x * (size - 1) / (made - 1) if made != 1 else x * 0
    if kind == "asymmetric":
        return x / axis.scale
    if kind == "tf_crop_and_resize":
        step = (end - begin) * (size - 1)
        return begin * (size - 1) + (x * step / (made - 1) if made != 1 else x * 0 + step / 2)
    if kind == "half_pixel_symmetric":
        return size / 2 * (1 - axis.made / made) + centred
    return np.full(axis.made, -0.5) if kind == "pytorch_half_pixel" and made == 1 else centred


def taps(axis: Axis, manner: Manner) -> tuple[np.ndarray, np.ndarray]:
    """(indices, weights) of each element of the result, a row each; indices lie in the input."""
    where = coordinates(axis, manner.coordinates)
    if manner.mode == "nearest":
        found = _ROUNDED[manner.nearest](where)[:, None]
        weights = np.ones_like(found)
    else:
        shrunk = min(axis.scale, 1.0) if manner.antialias else 1.0
        reach = ceil((2 if manner.mode == "cubic" else 1) / shrunk)
        found = np.floor(where)[:, None] + np.arange(1 - reach, reach + 1)
        weights = _kernel(np.abs(found - where[:, None]) * shrunk, manner)
        if manner.exclude_outside:
            weights *= (found >= 0) & (found < axis.size)
        weights /= weights.sum(1, keepdims=True)
    return np.clip(found, 0, axis.size - 1).astype(np.int64), weights


def _kernel(distance: np.ndarray, manner: Manner) -> np.ndarray:
    """The weight of an element so far away."""
    if manner.mode == "linear":
        return np.maximum(0.0, 1.0 - distance)
    a, d = manner.cubic, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _along(emit: Emitter, name: str, axis: Axis, manner: Manner, kind: int) -> str:
    indices, weights = taps(axis, manner)
    if manner.mode == "nearest":
        return _gathered(emit, name, indices[:, 0], axis)
    if indices.shape[1] > _FEW:
        return _multiplied(emit, name, indices, weights, axis, kind)
    rank = len(emit.shape(emit.input(0)))
    form = [-1 if at == axis.index else 1 for at in range(rank)]
    total = ""
    for chosen, factors in zip(indices.T, weights.T, strict=True):
        factor = emit.constant(factors.reshape(form), kind)
        part = emit("Mul", _gathered(emit, name, chosen, axis), factor)
        total = emit("Add", total, part) if total else part
    return total


def _gathered(emit: Emitter, name: str, indices: np.ndarray, axis: Axis) -> str:
    return emit("Gather", name, emit.constant(indices, TensorProto.INT64), axis=axis.index)


def _multiplied(
    emit: Emitter, name: str, indices: np.ndarray, weights: np.ndarray, axis: Axis, kind: int
) -> str:
    matrix = np.zeros((axis.size, axis.made))
    for made, (row, factors) in enumerate(zip(indices, weights, strict=True)):
        np.add.at(matrix[:, made], row, factors)
    order = list(range(len(emit.shape(emit.input(0)))))
    order[axis.index], order[-1] = order[-1], order[axis.index]  # its own inverse
    product = emit("MatMul", emit("Transpose", name, perm=order), emit.constant(matrix, kind))
    return emit("Transpose", product, perm=order)


def _extrapolated(emit: Emitter, name: str, axes: list[Axis], manner: Manner, kind: int) -> str:
    """The value asked for where a cropped region goes beyond the input."""
    if manner.coordinates != "tf_crop_and_resize":
        return name
    rank = len(emit.shape(emit.input(0)))
    outside = np.zeros((1,) * rank, bool)
    for axis in axes:
        where = coordinates(axis, manner.coordinates)
        form = [-1 if at == axis.index else 1 for at in range(rank)]
        outside = outside | ((where < 0) | (where > axis.size - 1)).reshape(form)
    if not outside.any():
        return name
    value = emit.constant(emit.attribute("extrapolation_value", 0.0), kind)
    return emit("Where", emit.constant(outside, TensorProto.BOOL), value, name)
