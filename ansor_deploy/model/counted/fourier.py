"""Fourier transforms along an axis of which a run decides the size.

X[k] = sum over t < n of x[t] * exp(-2 pi i k t / n): the factors are looked up in a table of n
angles, which a run computes, since a constant matrix holds for one size alone.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import TensorProto

from ..operators import counted_places
from ..operators.emitter import INT64
from ..operators.signal import axis_of
from .known import Axes, Step
from .numbers import Number

_REAL = TensorProto.FLOAT


def transformed(step: Step) -> list[tuple[str, Axes]] | None:
    """DFT: along an axis without counted elements as it stands, else by a computed matrix."""
    shape, own = step.known_shape(step.input(0)), step.axes(0)
    if not shape or len(shape) - 1 in own:
        return None
    axis = axis_of(step) % len(shape)
    if axis not in own:
        return [(step.again(), own)]
    inverse, onesided = (bool(step.attribute(name, 0)) for name in ("inverse", "onesided"))
    if not _is_whole(step, own[axis]) or (inverse and onesided):
        return None
    made = _product(step, axis, own[axis], inverse=inverse)
    if not onesided:
        return [(made, own)]
    half = step.divided(own[axis], 2) + 1
    return [(step.cut(made, axis, shape[axis] // 2 + 1), {**own, axis: half})]


def _is_whole(step: Step, count: Number) -> bool:
    """Whether exactly the elements that count are transformed, as float32 numbers."""
    length = step.values(1)
    whole = not step.input(1) or (length is not None and length.item() == count)
    return whole and step.dtype(step.input(0)) == _REAL


def _product(step: Step, axis: int, count: Number, *, inverse: bool) -> str:
    """The products of the real and the imaginary parts with cosines and sines."""
    shape = step.shape(step.input(0))
    data = step.masked(step.input(0), {axis: count})
    order = [at for at in range(len(shape)) if at != axis] + [axis]
    turned = step("Transpose", data, perm=order)
    parts = [step.slice(turned, len(shape) - 2, at, at + 1) for at in range(shape[-1])]
    room = shape[axis]
    cosines, sines = step.once(("waves", room, count), partial(_waves, step, room, count))
    by_cosine = [step("MatMul", part, cosines) for part in parts]
    by_sine = [step("MatMul", part, sines) for part in parts]
    # The inverse has the negated sines.
    add, take = ("Sub", "Add") if inverse else ("Add", "Sub")
    if len(parts) == 1:
        imaginary = by_sine[0] if inverse else step("Neg", by_sine[0])
        made = [by_cosine[0], imaginary]
    else:
        made = [step(add, by_cosine[0], by_sine[1]), step(take, by_cosine[1], by_sine[0])]
    if inverse:
        size = step.cast(step.scalar(count), _REAL)
        made = [step("Div", part, size) for part in made]
    joined = step("Concat", *made, axis=len(shape) - 2)
    return step("Transpose", joined, perm=np.argsort(order).tolist())


def _waves(step: Step, room: int, count: Number) -> tuple[str, str]:
    """The cosines and the sines of 2 pi t k / n, for all t and k that there is room for.

    k is a sum of a large and a small part, so that few angles are looked up: the sum of both has
    cos a * cos b - sin a * sin b.
    """
    step.room_for(room, room)
    small = 1 << room.bit_length() // 2
    tables = _tables(step, np.arange(room), count)
    large = np.arange(0, room, small)
    (cos_a, sin_a), (cos_b, sin_b) = (
        [step.reshape(one, room, *form) for one in _looked_up(step, tables, parts, count)]
        for parts, form in ((large, (-1, 1)), (np.arange(small), (1, -1)))
    )
    cosines = step("Sub", step("Mul", cos_a, cos_b), step("Mul", sin_a, sin_b))
    sines = step("Add", step("Mul", sin_a, cos_b), step("Mul", cos_a, sin_b))
    whole = (step.reshape(one, room, -1) for one in (cosines, sines))
    cosines, sines = (step.cut(one, 1, room) for one in whole)
    return cosines, sines


def _looked_up(
    step: Step, tables: tuple[str, str], parts: np.ndarray, count: Number
) -> tuple[str, str]:
    """The cosines and the sines of 2 pi t k / n for each t and each k in `parts`."""
    products = np.outer(np.arange(step.shape(tables[0])[0]), parts)
    turns = step("Mod", step.constant(products, INT64), step.scalar(count))
    ends, rooms = [step.scalar(count)], step.shape(tables[0])
    sizes: counted_places.Sizes = [*ends, len(parts)]
    words = {"may_fail": False, "fills": False}  # all are in range; this says so to what reads them
    turns = counted_places.places(step, turns, ends, rooms, sizes, **words)
    cosines, sines = (step("Gather", table, turns) for table in tables)
    return cosines, sines


def _tables(step: Step, places: np.ndarray, count: Number) -> tuple[str, str]:
    """The cosines and the sines of 2 pi m / n for all m < n, rounded about once.

    Of the angle, whole quarters of a turn are known exactly, and the rest is small.
    """
    number = step.scalar(count)
    twice = step("Mul", number, step.constant(2, INT64))
    quarter = step("Div", step("Add", step.constant(8 * places, INT64), number), twice)
    rest = step("Sub", step.constant(4 * places, INT64), step("Mul", quarter, number))
    share = step("Div", step.cast(rest, _REAL), step.cast(number, _REAL))
    angles = step("Mul", share, step.constant(np.pi / 2, _REAL))
    cosine, sine = step("Cos", angles), step("Sin", angles)
    turned = step("Mod", quarter, step.constant(4, INT64))
    odd = step("Equal", step("Mod", turned, step.constant(2, INT64)), step.constant(1, INT64))
    signs = (step.constant(one, _REAL) for one in ([1, -1, -1, 1], [1, 1, -1, -1]))
    flips = [step("Gather", one, turned) for one in signs]
    whole = step("Where", odd, sine, cosine), step("Where", odd, cosine, sine)
    return step("Mul", whole[0], flips[0]), step("Mul", whole[1], flips[1])


RULES = {"DFT": transformed}
