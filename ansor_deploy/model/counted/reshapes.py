"""Reshape and Flatten: the elements that count stay contiguous in any shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..operators.emitter import INT64
from .found import places_of
from .groups import completed, grouped, regrouped
from .known import Axes, Step
from .numbers import Number, Sum, most, quotient


def reshaped(step: Step) -> list[tuple[str, Axes]] | None:
    """The same elements in another shape."""
    values, shape = step.values(1), step.known_shape(step.input(0))
    if shape is None or values is None:
        return None
    sizes: list[Number] = list(values.reshape(-1))
    if not step.attribute("allowzero", 0):
        dims = step.dims(0)
        sizes = [dims[at] if n == 0 else n for at, n in enumerate(sizes)]
    if (source := _before(step, sizes)) is not None:
        return [source]
    step.facts.sources[step.node.output[0]] = step.input(0)
    return [into(step, step.input(0), sizes)]


def _before(step: Step, sizes: Sequence[Number]) -> tuple[str, Axes] | None:
    """What the first input was before it was reshaped, if it is to get that shape again."""
    known = step.facts
    source = known.sources.get(step.input(0), "")
    if not source or completed(sizes, step.dims(0)) != known.dims(source):
        return None
    return source, known.axes.get(source, {})


def flattened(step: Step) -> list[tuple[str, Axes]] | None:
    """A matrix."""
    if (shape := step.known_shape(step.input(0))) is None:
        return None
    axis = step.attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    behind = prod(shape[axis:]) if not any(at >= axis for at in step.axes(0)) else None
    before = prod(shape[:axis]) if not any(at < axis for at in step.axes(0)) else None
    if behind is None and before is None:
        return None
    return [into(step, step.input(0), [before or -1, behind or -1])]


def into(step: Step, name: str, sizes: Sequence[Number]) -> tuple[str, Axes]:
    """A tensor in a shape, with a -1 where a size follows from the others."""
    own = step.facts.axes.get(name, {})
    if (same := _with_ones(step, name, sizes)) is not None:
        return same
    sizes = completed(sizes, step.facts.dims(name)) or sizes
    if len(own) != 1 or sum(isinstance(n, Sum) for n in sizes) > 1:
        return _in_groups(step, name, sizes)
    ((axis, number),) = own.items()
    shape = step.shape(name)
    before, behind = prod(shape[:axis]), prod(shape[axis + 1 :])
    at, counted, rest = _counted(step, sizes, number * (before * behind))
    ahead = prod(most(n) for n in sizes[:at])
    if ahead not in (1, before) or not rest:
        return _in_groups(step, name, sizes)
    flat = step.reshape(name, before, shape[axis] * behind)
    if ahead != before:
        flat = _joined(step, flat, number * behind)
    bound = step.shape(flat)[1] // rest
    flat = step.cut(flat, 1, bound * rest)
    final = [most(n) if other != at else bound for other, n in enumerate(_ints(sizes, at))]
    return step.reshape(flat, *final), {at: counted}


_WHY = "a run decides how much it reads, and that does not fit this shape"


def _in_groups(step: Step, name: str, sizes: Sequence[Number]) -> tuple[str, Axes]:
    groups = grouped(step.facts.dims(name), sizes)
    if groups is None:
        raise step.refuse(_WHY)
    return regrouped(step, name, groups)


def _ints(sizes: Sequence[Number], at: int) -> list[Number]:
    return [0 if other == at else n for other, n in enumerate(sizes)]


def _with_ones(step: Step, name: str, sizes: Sequence[Number]) -> tuple[str, Axes] | None:
    """The tensor with axes of extent one added or dropped, if the shape asks for no more."""
    dims = step.facts.dims(name)
    left = [n for n in dims if n != 1]
    if -1 in sizes:
        others = [n for n in sizes if n not in (1, -1)]
        missing = [n for n in left if n not in others]
        fills = missing[0] if len(missing) == 1 else 1
        sizes = [fills if n == -1 else n for n in sizes]
    if left != [n for n in sizes if n != 1]:
        return None
    bounds = iter(n for n, d in zip(step.shape(name), dims, strict=True) if d != 1)
    made = step.reshape(name, *(1 if n == 1 else next(bounds) for n in sizes))
    return made, {at: n for at, n in enumerate(sizes) if isinstance(n, Sum)}


def _counted(step: Step, sizes: Sequence[Number], total: Number) -> tuple[int, Number, int]:
    """(the place of the one size that a run decides, that size, the elements behind it).

    total: the number of elements of the tensor.
    """
    opened = [at for at, n in enumerate(sizes) if isinstance(n, Sum) or n == -1]
    if len(opened) != 1:
        raise step.refuse(_WHY)
    ((at),) = opened
    others = prod(most(n) for other, n in enumerate(sizes) if other != at)
    size = quotient(total, others) if others else None
    if size is None:
        raise step.refuse(_WHY)
    return at, size, prod(most(n) for n in sizes[at + 1 :])


def _joined(step: Step, rows: str, number: Number) -> str:
    """Several rows as one: of each, the first `number` elements, one after the other."""
    count, size = step.shape(rows)
    places = step.constant(np.arange(count * size) % size, INT64)
    inside = step("Less", places, step.scalar(number))
    found, _ = places_of(step, inside, {})
    flat = step.reshape(rows, count * size)
    taken = step("Gather", flat, step.reshape(found, -1), axis=0)
    return step.reshape(taken, 1, count * size)


RULES = {"Flatten": flattened, "Reshape": reshaped}
