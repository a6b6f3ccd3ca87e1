"""Resize and Upsample: each axis separately, its samples and weights computed in advance.

A result along an axis is a weighted sum of a few elements. Shapes are static, so the elements and
their weights are constants (`sampling.py`).
"""

from __future__ import annotations

from math import floor

import numpy as np
from onnx import TensorProto, helper

from ..graph.graph import BYTES, FLOATS
from .cropped import SIDES, cropped
from .emitter import Emitter
from .operator import Limit, Operator, in_branch
from .sampling import COORDINATES, ROUNDINGS, Axis, Manner, outside, taps

_FEW = 4  # the most taps that are added one by one; more are a product with a matrix
_EXACT_NEAREST = (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))
_OUTSIDE = Limit("no branch of an If that a run chooses holds it", in_branch)
_KNOWN = {
    "mode": frozenset(("nearest", "linear", "cubic")),
    "coordinate_transformation_mode": COORDINATES,
    "nearest_mode": ROUNDINGS,
    "keep_aspect_ratio_policy": frozenset(("stretch", "not_larger", "not_smaller")),
}


def resize(emit: Emitter) -> str | None:
    """One gather for each axis for the nearest element, else a weighted sum of gathers."""
    manner = _manner(emit)
    if _is_cropped_by_data(emit, manner):
        return cropped(emit, _extents(emit, list(emit.shape(emit.input(0))))[1])
    axes = _axes(emit, manner)
    if not axes:
        return emit.input(0)
    if _is_plain(emit, manner, axes):
        return _named_once(emit)
    kind = emit.dtype(emit.input(0))
    if manner.mode == "nearest" or kind in FLOATS:
        return _resampled(emit, emit.input(0), axes, manner, kind)
    if manner.mode != "linear" or manner.antialias or kind not in BYTES:
        raise emit.refuse("of whole numbers, only bytes can be interpolated, and only linearly")
    # ONNX Runtime rounds towards zero, and so does the conversion.
    wide = emit("Cast", emit.input(0), to=TensorProto.FLOAT)
    made = _resampled(emit, wide, axes, manner, TensorProto.FLOAT)
    return emit("Cast", made, to=kind)


def _is_cropped_by_data(emit: Emitter, manner: Manner) -> bool:
    """Whether it interpolates in a region of images that a run chooses."""
    if manner.coordinates != "tf_crop_and_resize" or emit.graph.value(emit.input(1)) is not None:
        return False
    whole = emit.shape(emit.input(0))[:-SIDES]
    sizes = emit.known_shape(emit.node.output[0]) or ()
    plain = manner.mode == "linear" and not manner.antialias and not emit.attribute("axes")
    floats = emit.dtype(emit.input(0)) in FLOATS
    return plain and floats and len(whole) == SIDES and sizes[:SIDES] == whole


def _resampled(emit: Emitter, name: str, axes: list[Axis], manner: Manner, kind: int) -> str:
    for axis in axes:
        name = _along(emit, name, axis, manner, kind)
    return _extrapolated(emit, name, axes, manner, kind)


def _manner(emit: Emitter) -> Manner:
    for name, known in _KNOWN.items():
        if (value := emit.attribute(name)) is not None and value not in known:
            raise emit.refuse(f"`{name}` is {value}, and not {' or '.join(sorted(known))}")
    old = emit.graph.opset < 11  # there Resize is what Upsample is
    return Manner(
        emit.attribute("mode", "nearest"),
        "asymmetric" if old else emit.attribute("coordinate_transformation_mode", "half_pixel"),
        "simple" if old else emit.attribute("nearest_mode", "round_prefer_floor"),
        emit.attribute("cubic_coeff_a", -0.75),
        bool(emit.attribute("exclude_outside", 0)),
        bool(emit.attribute("antialias", 0)),
    )


def _axes(emit: Emitter, manner: Manner) -> list[Axis]:
    """The axes that change; none if the result has the size of the input."""
    shape = emit.shape(emit.input(0))
    rank = len(shape)
    named = emit.attribute("axes") or range(rank)
    places = [index + rank if index < 0 else index for index in named]
    if not set(places) <= set(range(rank)) or len(set(places)) < len(places):
        raise emit.refuse(f"`axes` is {list(named)}, and its input has {rank} axes")
    sizes = [shape[index] for index in places]
    scales, made = _extents(emit, sizes)
    regions = _regions(emit, manner, len(sizes))
    emit.room_for(16, max(made))  # about this many numbers for each element of the result
    axes = [Axis(*of_axis) for of_axis in zip(places, sizes, made, scales, regions, strict=True)]
    if all(axis.size == axis.made for axis in axes):
        return []
    return [axis for axis in axes if axis.scale != 1]


def _regions(emit: Emitter, manner: Manner, count: int) -> list[tuple[float, float]]:
    """The part of each axis that is resized, as a range within 0 to 1."""
    cropped = manner.coordinates == "tf_crop_and_resize"
    roi = _constant(emit, 1) if cropped else None
    if roi is None:
        return [(0.0, 1.0)] * count
    if roi.size != 2 * count:
        raise emit.refuse(f"`roi` has {roi.size} numbers for {count} axes, and not two for each")
    return [(begin, end) for begin, end in np.reshape(roi, (2, -1)).T.tolist()]


def _extents(emit: Emitter, shape: list[int]) -> tuple[list[np.float32], list[int]]:
    """Scales and sizes of the result; computed in float32, which decides how sizes are rounded."""
    old = emit.graph.opset < 11
    scales, sizes = _constant(emit, 1 if old else 2), None if old else _constant(emit, 3)
    if scales is None and emit.attribute("scales"):
        scales = np.asarray(emit.attribute("scales"))
    given = next((one for one in (scales, sizes) if one is not None and one.size), None)
    if given is None:
        raise emit.refuse("scales or sizes must be constant")
    if given.shape != (len(shape),) or not (np.isfinite(given) & (given > 0)).all():
        needs = f"needs {len(shape)} scales or sizes above 0"
        raise emit.refuse(f"it {needs}, and has {given.tolist()}")
    extents = np.array(shape, np.float32)
    numbers, policy = (
        given.astype(np.float32),
        emit.attribute("keep_aspect_ratio_policy", "stretch"),
    )
    if given is scales:
        return list(numbers), [int(made) for made in numbers * extents]
    ratios = numbers / extents
    if policy == "stretch":
        return list(ratios), [int(size) for size in given]
    kept = ratios.min() if policy == "not_larger" else ratios.max()
    return [kept] * len(shape), [floor(float(size) + 0.5) for size in kept * extents]


def _constant(emit: Emitter, index: int) -> np.ndarray | None:
    return emit.constant_input(index) if emit.input(index) else None


def _named_once(emit: Emitter) -> str | None:
    """The same node without an empty list beside its scales or sizes, which TVM does not expect.

    None if there is no such list.
    """
    given = [emit.input(at) for at in range(4)]
    if not given[2] or not given[3]:
        return None
    for at in (2, 3):
        if not emit.constant_input(at).size:
            given[at] = ""
    words = {one.name: helper.get_attribute_value(one) for one in emit.node.attribute}
    return emit("Resize", *given, **words)


def _is_plain(emit: Emitter, manner: Manner, axes: list[Axis]) -> bool:
    """Whether TVM's operator computes it exactly: images with batch and channels first."""
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
    emit.room_for(axis.size, axis.made)
    matrix = np.zeros((axis.size, axis.made))
    for made, (row, factors) in enumerate(zip(indices, weights, strict=True)):
        np.add.at(matrix[:, made], row, factors)
    order = list(range(len(emit.shape(emit.input(0)))))
    order[axis.index], order[-1] = order[-1], order[axis.index]  # its own inverse
    product = emit("MatMul", emit("Transpose", name, perm=order), emit.constant(matrix, kind))
    return emit("Transpose", product, perm=order)


def _extrapolated(emit: Emitter, name: str, axes: list[Axis], manner: Manner, kind: int) -> str:
    """Put the extrapolation value where a cropped region goes beyond the input."""
    if manner.coordinates != "tf_crop_and_resize":
        return name
    rank = len(emit.shape(emit.input(0)))
    beyond = np.zeros((1,) * rank, bool)
    for axis in axes:
        form = [-1 if at == axis.index else 1 for at in range(rank)]
        beyond = beyond | outside(axis, manner).reshape(form)
    if not beyond.any():
        return name
    value = emit.constant(emit.attribute("extrapolation_value", 0.0), kind)
    return emit("Where", emit.constant(beyond, TensorProto.BOOL), value, name)


OPERATORS = (
    Operator("Upsample", limits=(_OUTSIDE,), expand=resize),
    Operator("Resize", since=10, limits=(_OUTSIDE,), expand=resize),
)
