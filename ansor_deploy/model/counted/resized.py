"""Images that are enlarged or reduced along axes with a size that a run decides.

Tables of positions are often resized for the size of an image: then only the result's size is open.

    y = Resize(x), n of x count, and m of y
    -->
    at = clip((arange + 0.5) * n / m - 0.5, 0, n - 1)
    y = Gather(x, floor(at)) * (1 - at + floor(at)) + Gather(x, floor(at) + 1) * (at - floor(at))

Where each element is repeated an integer number of times, it stays a Resize.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Any

import numpy as np
from onnx import TensorProto

from ..graph.graph import FLOATS
from ..operators.emitter import INT64
from .known import Axes, Step
from .numbers import Number, Sum, least, most, quotient

_REAL = TensorProto.FLOAT
# For each of four elements in turn, its weight in cubic interpolation: a polynomial of the distance
# s from the second one, s ** 3 first; each coefficient is a constant and a multiple of the node's.
_CUBIC = (
    ((0, 1), (0, -2), (0, 1), (0, 0)),
    ((2, 1), (-3, -1), (0, 0), (1, 0)),
    ((-2, -1), (3, 2), (0, -1), (0, 0)),
    ((0, -1), (0, 1), (0, 0), (0, 0)),
)
_FINEST = 16  # scales are multiples of 1 / n for some n up to this
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
# If each element is repeated n times, all forms of Resize are equal: this is one for integers.
_WHOLE = {
    "mode": "nearest",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}


def resized(step: Step) -> list[tuple[str, Axes]] | None:
    """The nearest elements, or interpolation between elements."""
    own, shape = step.axes(0), step.known_shape(step.input(0))
    if not shape or step.graph.opset < 11 or step.attribute("axes"):
        return None
    factors, made = _factors(step), _sizes(step)
    if not own and not any(isinstance(n, Sum) for n in made or ()):
        return None
    whole = own and factors is not None and all(factors[at] == int(factors[at]) for at in own)
    if factors and whole and _is_nearest(step):
        return _spread(step, step.input(0), shape, factors)
    if made is None or _is_other(step):
        return None
    if factors and whole and _is_between(step):
        return _spread(step, _edged(step), shape, factors)
    name, axes = step.input(0), dict[int, Number]()
    for axis, (size, number) in enumerate(zip(made, step.dims(0), strict=True)):
        if size != number:
            name = _along(step, name, axis, number, size)
        if isinstance(size, Sum):
            axes[axis] = size
    return [(name, axes)]


def _spread(
    step: Step, name: str, shape: Sequence[int], factors: Sequence[Fraction | np.float32]
) -> list[tuple[str, Axes]] | None:
    """Repeat each element, or interpolate as many values between it and the next one."""
    sizes = step.numbers(*(int(n * times) for n, times in zip(shape, factors, strict=True)))
    plain = _is_nearest(step) and all(n == int(n) for n in factors)
    given = ["", "", sizes]
    if step.graph.opset < 13:  # which has to have scales, and those of float32
        if any(float(np.float32(n)) != n for n in factors):
            return None
        given = [step.constant(n, _REAL) for n in ([], list(map(float, factors)))]
    made = step("Resize", name, *given, **(_WHOLE if plain else _words(step)))
    axes = {axis: n * int(factors[axis]) for axis, n in step.axes(0).items()}
    return [(made, axes)] if step.known_shape(made) else None


def _words(step: Step) -> Mapping[str, Any]:
    names = ("mode", "coordinate_transformation_mode", "nearest_mode")
    return {name: word for name in names if (word := step.attribute(name)) is not None}


def _is_nearest(step: Step) -> bool:
    """Whether enlarging n times repeats each element n times."""
    where = step.attribute("coordinate_transformation_mode", "half_pixel")
    to = step.attribute("nearest_mode", "round_prefer_floor")
    pairs = (where == "asymmetric", to == "floor"), (where == "half_pixel", "round" in to)
    return step.attribute("mode", "nearest") == "nearest" and any(map(all, pairs))


def _is_between(step: Step) -> bool:
    """Whether it interpolates at places that do not depend on any size."""
    where = step.attribute("coordinate_transformation_mode", "half_pixel")
    return step.attribute("mode", "nearest") == "linear" and where != "align_corners"


def _edged(step: Step) -> str:
    """The input with its last counted element repeated behind it, as beyond an edge."""
    name = step.input(0)
    for axis, number in step.axes(0).items():
        if not axis:
            continue  # a batch of images has no edge
        places = step.constant(np.arange(step.shape(name)[axis]), INT64)
        last = step("Max", step.scalar(number + -1), step.constant(0, INT64))
        name = step("Gather", name, step("Min", places, last), axis=axis)
    return name


def _is_other(step: Step) -> bool:
    """Whether it is of no known mode, or not of floats."""
    coordinates = step.attribute("coordinate_transformation_mode", "half_pixel")
    mode, policy = step.attribute("mode", "nearest"), step.attribute("keep_aspect_ratio_policy")
    known = mode in ("nearest", "linear", "cubic") and coordinates in _COORDINATES
    special = step.attribute("antialias", 0) or policy not in (None, "stretch")
    cut = mode == "cubic" and step.attribute("exclude_outside", 0)
    return not known or special or cut or step.dtype(step.input(0)) not in FLOATS


def _scales(step: Step) -> list[float] | None:
    given = step.graph.value(step.input(2)) if step.input(2) else None
    return list(map(float, given)) if given is not None and np.size(given) and given.ndim else None


def _factors(step: Step) -> list[Fraction | np.float32] | None:
    """The factor by which each axis grows; None if that depends on a run."""
    if scales := _scales(step):
        return list(map(np.float32, scales))  # sizes are rounded by these
    sizes = step.values(3) if step.input(3) else None
    if sizes is None:
        return None
    found = list(map(_times, sizes.reshape(-1), step.dims(0)))
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _times(size: Number, own: Number) -> Fraction | None:
    """The factor by which an axis grows; None if that depends on a run."""
    if not isinstance(own, Sum):
        return None if isinstance(size, Sum) else Fraction(int(size), own)
    times = quotient(size, own)
    return None if times is None or isinstance(times, Sum) else Fraction(times)


def _sizes(step: Step) -> list[Number] | None:
    """How much of the result counts along each axis; None if that is not known."""
    if scales := _scales(step):
        parts = [Fraction(scale).limit_denominator(_FINEST) for scale in scales]
        if any(float(part) != scale for part, scale in zip(parts, scales, strict=True)):
            return None
        every = zip(step.dims(0), parts, strict=True)
        return [step.divided(n * part.numerator, part.denominator) for n, part in every]
    sizes = step.values(3) if step.input(3) else None
    return None if sizes is None else list(sizes.reshape(-1))


def _along(step: Step, name: str, axis: int, number: Number, size: Number) -> str:
    """A tensor resized along one axis."""
    at = _places(step, axis, number, size)
    if step.attribute("mode", "nearest") == "nearest":
        return step("Gather", name, _index(step, name, axis, _rounded(step, at)), axis=axis)
    low, kind = step("Floor", at), step.dtype(name)
    form = [-1 if k == axis else 1 for k in range(len(step.shape(name)))]
    share = step.reshape(step("Sub", at, low), *form)
    parts = []
    for apart, part in _weights(step, share):
        near = _within(step, step("Add", low, step.constant(apart, _REAL)), number)
        taken = step("Gather", name, _index(step, name, axis, near), axis=axis)
        parts.append(step("Mul", taken, part if kind == _REAL else step.cast(part, kind)))
    return reduce(partial(step, "Add"), parts)


def _weights(step: Step, share: str) -> list[tuple[int, str]]:
    """The elements that make a value, by their distance from the one below it, and their weights.

    share: how far the value is from the element below it.
    """
    if step.attribute("mode", "nearest") == "linear":
        return [(0, step("Sub", step.constant(1, _REAL), share)), (1, share)]
    steep = step.attribute("cubic_coeff_a", -0.75)
    return [(at - 1, _polynomial(step, share, steep, one)) for at, one in enumerate(_CUBIC)]


def _polynomial(step: Step, at: str, steep: float, terms: Sequence[tuple[int, int]]) -> str:
    first, *rest = (step.constant(fixed + by * steep, _REAL) for fixed, by in terms)
    return reduce(lambda made, one: step("Add", step("Mul", made, at), one), rest, first)


def _within(step: Step, at: str, number: Number) -> str:
    """Places held to what counts."""
    end = step.cast(step.scalar(number + -1), _REAL)
    return step("Min", step("Max", at, step.constant(0, _REAL)), end)


def _places(step: Step, axis: int, number: Number, size: Number) -> str:
    """The place in the tensor of each element of the result: float32, within what counts.

    Cubic interpolation reads elements on both sides, so its places may lie beyond.
    """
    where = step.attribute("coordinate_transformation_mode", "half_pixel")
    places = step.constant(np.arange(most(size)), _REAL)
    one, half = (step.constant(n, _REAL) for n in (1, 0.5))
    old, new = (step.cast(step.scalar(n), _REAL) for n in (number, size))
    if where == "align_corners":
        steps = step("Max", step("Sub", new, one), one)
        at = step("Div", step("Mul", places, step("Sub", old, one)), steps)
    else:
        scales = _scales(step)
        scale = step.constant(scales[axis], _REAL) if scales else step("Div", new, old)
        middle = "half_pixel" in where
        at = step("Div", step("Add", places, half) if middle else places, scale)
        at = step("Sub", at, half) if middle else at
    if where == "pytorch_half_pixel" and least(size) < 2:  # one element is the first, not a middle
        at = step("Where", step("Less", one, new), at, step.constant(0, _REAL))
    return at if step.attribute("mode", "nearest") == "cubic" else _within(step, at, number)


def _rounded(step: Step, at: str) -> str:
    mode, half = step.attribute("nearest_mode", "round_prefer_floor"), step.constant(0.5, _REAL)
    if mode == "round_prefer_floor":
        return step("Ceil", step("Sub", at, half))
    if mode == "round_prefer_ceil":
        return step("Floor", step("Add", at, half))
    return step("Ceil" if mode == "ceil" else "Floor", at)


def _index(step: Step, name: str, axis: int, at: str) -> str:
    """Indices within a tensor's room; they are arbitrary for results that do not count."""
    last = step.constant(step.shape(name)[axis] - 1, INT64)
    whole = step("Max", step.cast(at, INT64), step.constant(0, INT64))
    return step("Min", whole, last)


def cropped(step: Step) -> list[tuple[str, Axes]] | None:
    """Regions of images of one size, of which a run decides the number; else resized images."""
    if step.attribute("coordinate_transformation_mode") != "tf_crop_and_resize":
        return resized(step)
    shape, own, made = step.known_shape(step.input(0)), step.axes(0), _sizes(step)
    if not shape or own.keys() != {0} or made is None or made[0] != own[0]:
        return None
    sizes = [size for size in made[1:] if not isinstance(size, Sum)]
    if len(sizes) + 1 < len(shape):
        return None
    given = step.input(0), step.input(1), "", step.numbers(shape[0], *sizes)
    return [(step.again(*given), own)]


RULES = {"Resize": cropped}
