"""Resize of a region that a run chooses: TensorFlow's crop_and_resize, one region at a time.

    at = begin * (n - 1) + arange(m) * (end - begin) * (n - 1) / (m - 1)          along each axis
    y = Gather(x, floor(at)) * (1 - at + floor(at)) + Gather(x, floor(at) + 1) * (at - floor(at))

Places are computed in float32, in the order of ONNX Runtime, since the last bit decides whether
one at the edge of the region is outside. Like there, only the last two axes have a region.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .emitter import INT64, Emitter

_REAL = TensorProto.FLOAT
SIDES = 2  # the last so many axes have a region


def cropped(emit: Emitter, made: list[int]) -> str:
    """The region of images, resized; made: the sizes of the result."""
    shape = emit.shape(emit.input(0))
    name, beyond = emit.input(0), ""
    for axis in range(len(shape) - SIDES, len(shape)):
        at = _places(emit, axis, shape[axis], made[axis])
        outside = _outside(emit, at, axis, shape[axis])
        beyond = emit("Or", beyond, outside) if beyond else outside
        name = _between(emit, name, at, axis, shape[axis])
    value = emit.constant(emit.attribute("extrapolation_value", 0.0), emit.dtype(emit.input(0)))
    return emit("Where", beyond, value, name)


def _places(emit: Emitter, axis: int, size: int, made: int) -> str:
    """Where the elements of the result lie along an axis of the input."""
    rank = len(emit.shape(emit.input(0)))
    begin, end = (_bound(emit, at) for at in (axis, rank + axis))
    last = emit.constant(size - 1, _REAL)
    if made == 1:
        middle = emit("Mul", emit.constant(0.5, _REAL), emit("Add", begin, end))
        return emit("Mul", middle, last)
    steps = emit("Mul", emit.constant(np.arange(made), _REAL), emit("Sub", end, begin))
    apart = emit("Div", emit("Mul", steps, last), emit.constant(made - 1, _REAL))
    return emit("Add", emit("Mul", begin, last), apart)


def _bound(emit: Emitter, at: int) -> str:
    """A bound of the region, as a list of one."""
    return emit.cast(emit.slice(emit.input(1), 0, at, at + 1), _REAL)


def _along(emit: Emitter, name: str, axis: int) -> str:
    """A list as a tensor that broadcasts along an axis."""
    rank = len(emit.shape(emit.input(0)))
    return emit.reshape(name, *(-1 if at == axis else 1 for at in range(rank)))


def _outside(emit: Emitter, at: str, axis: int, size: int) -> str:
    below = emit("Less", at, emit.constant(0, _REAL))
    above = emit("Greater", at, emit.constant(size - 1, _REAL))
    return _along(emit, emit("Or", below, above), axis)


def _between(emit: Emitter, name: str, at: str, axis: int, size: int) -> str:
    """Values between the elements on both sides of each place."""
    kind, last = emit.dtype(emit.input(0)), emit.constant(size - 1, INT64)
    held = emit("Min", emit("Max", at, emit.constant(0, _REAL)), emit.constant(size - 1, _REAL))
    low = emit("Floor", held)
    share = emit.cast(_along(emit, emit("Sub", held, low), axis), kind)
    # Of a place that is NaN no integer is known.
    first = emit("Min", emit("Max", emit.cast(low, INT64), emit.constant(0, INT64)), last)
    second = emit("Min", emit("Add", first, emit.constant(1, INT64)), last)
    near, far = (emit("Gather", name, one, axis=axis) for one in (first, second))
    rest = emit("Sub", emit.constant(1, kind), share)
    return emit("Add", emit("Mul", near, rest), emit("Mul", far, share))
