"""Rules for nodes that split tensors along counted axes, or concatenate them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from ..operators import counted_places
from ..operators.emitter import INT64
from ..operators.repacked import lay_behind
from .known import Axes, Step
from .numbers import Number, Sum, larger, least, most, smaller, symbol


def chosen(step: Step, op: str, one: Number, other: Number) -> Number:
    """The `Min` or `Max` of two numbers."""
    known = (smaller if op == "Min" else larger)(one, other)
    for low, high in ((one, other), (other, one)) if known is None else ():
        if step.facts.divided.least(high - low) >= 0:
            return low if op == "Min" else high
    if known is not None:
        return known
    made = step(op, step.scalar(one), step.scalar(other))
    pick = min if op == "Min" else max
    bounds = pick(least(one), least(other)), pick(most(one), most(other))
    return symbol(made, 0, bounds, next(n.cause for n in (one, other) if isinstance(n, Sum)))


def sliced(step: Step) -> list[tuple[str, Axes]] | None:
    """A part along some axes."""
    shape = step.known_shape(step.input(0))
    if not shape or (bounds := bounds_of(step, len(shape))) is None:
        return None
    name, axes = step.input(0), dict(step.axes(0))
    for axis, (start, end, by) in bounds.items():
        size = axes.pop(axis, shape[axis])
        if not (isinstance(size, Sum) or isinstance(start, Sum) or isinstance(end, Sum)):
            name = step.slice(name, axis, start, end, by)
            continue
        if _turns(start, end, by, size):
            name, axes[axis] = _turned(step, name, axis, size), size
            continue
        begin, stop = (_place(step, one, size) for one in (start, end))
        if begin is None or stop is None or by < 1:
            return None
        name, number = part(step, name, axis, begin, stop)
        if by > 1:
            name = step.slice(name, axis, 0, step.shape(name)[axis], by)
            number = step.divided(number + (by - 1), by)
        axes[axis] = number
    return [(name, axes)]


def _turns(start: Number, end: Number, by: int, size: Number) -> bool:
    """Whether a part is the whole axis backwards: from its last element to before its first."""
    return by == -1 and start == -1 and most(end) < -most(size)


def _turned(step: Step, name: str, axis: int, number: Number) -> str:
    """The elements that count along an axis, backwards."""
    places = step.constant(np.arange(step.shape(name)[axis]), INT64)
    behind = step("Sub", step.scalar(number + -1), places)
    return step("Gather", name, step("Max", behind, step.constant(0, INT64)), axis=axis)


def bounds_of(step: Step, rank: int) -> dict[int, tuple[Number, Number, int]] | None:
    """By axis: (start, end, step); starts and ends may count from the end."""
    starts, ends = step.attribute("starts"), step.attribute("ends")  # before opset 10
    if starts is None:
        starts, ends = _listed(step, 1), _listed(step, 2)
    if starts is None or ends is None or len(starts) != len(ends):
        return None
    named = step.input(3) or step.attribute("axes")
    axes = step.listed(3, "axes") if named else list(range(len(starts)))
    by = step.listed(4) if step.input(4) else [1] * len(starts)
    if axes is None or by is None:
        return None
    axes = [axis % rank for axis in axes]
    sizes = [step.dims(0)[axis] for axis in axes]
    every = zip(*(_places(step, some, sizes) for some in (starts, ends)), by, strict=True)
    return dict(zip(axes, every, strict=True))


def _listed(step: Step, at: int) -> list[Number | str] | None:
    """The elements of an input: numbers, or scalar tensors where only a run knows them."""
    if (values := step.values(at)) is not None:
        return list(values)
    shape = step.known_shape(step.input(at))
    if shape is None or len(shape) != 1 or step.axes(at):
        return None
    name = step.input(at)
    ones = (step("Gather", name, step.constant(n, INT64), axis=0) for n in range(shape[0]))
    return [step.cast(one, INT64) for one in ones]


def _places(
    step: Step, listed: Sequence[Number | str], sizes: Sequence[Number]
) -> Iterator[Number]:
    """Numbers as they are; scalar tensors as symbols between 0 and the size of the axis."""
    zero = step.constant(0, INT64)
    for one, size in zip(listed, sizes, strict=True):
        if isinstance(one, str):
            end = step.scalar(size)
            behind = step("Where", step("Less", one, zero), step("Add", one, end), one)
            made = step("Max", step("Min", behind, end), zero)
            yield symbol(made, 0, (0, most(size)), step.cause)
        else:
            yield one


def _place(step: Step, at: Number, size: Number) -> Number | None:
    """A place that may count from the end, as one from the start that is not beyond the end."""
    if most(at) < 0:
        return chosen(step, "Max", size + at if isinstance(size, Sum) else at + size, 0)
    return chosen(step, "Min", at, size) if least(at) >= 0 else None


def part(step: Step, name: str, axis: int, begin: Number, end: Number) -> tuple[str, Number]:
    """The part between two places along an axis, and its size."""
    number = chosen(step, "Max", end - begin if isinstance(end, Sum) else begin * -1 + end, 0)
    bound = min(most(number), step.shape(name)[axis])
    if not isinstance(begin, Sum):
        if begin == 0 and bound == step.shape(name)[axis]:
            return name, number
        return step.slice(name, axis, begin, begin + bound), number
    last = step.constant(step.shape(name)[axis] - 1, INT64)
    places = step("Add", step.constant(np.arange(bound), INT64), step.scalar(begin))
    return step("Gather", name, step("Min", places, last), axis=axis), number


def joined(step: Step) -> list[tuple[str, Axes]] | None:
    """Concatenate tensors."""
    names = list(step.node.input)
    shapes = [step.known_shape(name) for name in names]
    if any(shape is None for shape in shapes):
        return None
    rank = len(shapes[0] or ())
    axis = step.attribute("axis", 1) % rank
    names = [n for n in names if step.shape(n)[axis] != 0] or names[:1]
    numbers = [step.facts.dims(name)[axis] for name in names]
    names, axes = _beside(step, names, axis)
    if any(isinstance(number, Sum) for number in numbers[:-1]):
        room = sum(step.shape(name)[axis] for name in names)
        made = lay_behind(step, names, [*map(step.scalar, numbers)], axis, room)
    else:
        made = step("Concat", *names, axis=axis) if len(names) > 1 else names[0]
    return [(made, {**axes, axis: sum(numbers)})]


def _beside(step: Step, names: list[str], axis: int) -> tuple[list[str], Axes]:
    """The tensors, cut to equal sizes along all other axes, and what counts along these."""
    rank, axes = len(step.shape(names[0])), dict[int, Number]()
    for other in (at for at in range(rank) if at != axis):
        found = [n for name in names if (n := step.facts.axes.get(name, {}).get(other)) is not None]
        if found:
            size = min(step.shape(name)[other] for name in names)
            names = [step.cut(name, other, size) for name in names]
            axes[other] = found[0]
    return names, axes


def split(step: Step) -> list[tuple[str, Axes]] | None:
    """Parts along an axis, of sizes that are given, or of one size."""
    shape = step.known_shape(step.input(0))
    if not shape:
        return None
    axis = step.attribute("axis", 0) % len(shape)
    whole = step.dims(0)[axis]
    sizes = step.attribute("split") or step.values(1)
    if sizes is None and not step.input(1):
        count = len(step.node.output)
        each = step.divided(whole + (count - 1), count)
        sizes = [each] * (count - 1)
    if sizes is None:
        return None
    ends = [0, *accumulate(sizes)][: len(step.node.output)]
    return [_piece(step, axis, *pair) for pair in pairwise([*ends, whole])]


def _piece(step: Step, axis: int, begin: Number, end: Number) -> tuple[str, Axes]:
    """What lies between two places along an axis, and what counts of it."""
    begin, end = (chosen(step, "Min", at, step.dims(0)[axis]) for at in (begin, end))
    name, number = part(step, step.input(0), axis, begin, end)
    own = {at: n for at, n in step.axes(0).items() if at != axis}
    return name, {**own, **({axis: number} if isinstance(number, Sum) else {})}


def padded(step: Step) -> list[tuple[str, Axes]] | None:
    """A tensor with padding around it."""
    shape, values = step.known_shape(step.input(0)), step.values(1)
    listed = step.listed(3) if step.input(3) else list(range(len(shape or ())))
    if not shape or values is None or listed is None:
        return None
    mode = step.attribute("mode", "constant")
    name, own, axes = step.input(0), step.axes(0), dict(step.axes(0))
    for at, axis in enumerate(one % len(shape) for one in listed):
        before, behind = values[at], values[at + len(listed)]
        if (before, behind) == (0, 0):
            continue
        if least(before) < 0:
            return None
        number = own.get(axis, shape[axis])
        if mode == "constant" and not isinstance(before, Sum):
            name = _padded(step, name, axis, before, number, behind)
        else:
            name = _around(step, name, axis, before, number, behind)
        axes[axis] = number + (behind + before)
    return [(name, axes)]


def _around(
    step: Step, name: str, axis: int, before: Number, number: Number, behind: Number
) -> str:
    """A tensor padded with a value, or its own elements, around what counts, by the node's mode."""
    total = most(number + (behind + before))
    places = step("Sub", step.constant(np.arange(total), INT64), step.scalar(before))
    own = places
    zero, end = step.constant(0, INT64), step.scalar(number + -1)
    mode = step.attribute("mode", "constant")
    if mode == "reflect":
        apart = step("Abs", step("Sub", end, step("Abs", places)))
        places = step("Sub", end, apart)
    elif mode == "wrap":
        places = step("Mod", places, step.scalar(number))
    places = step("Max", step("Min", places, end), zero)
    size = number + (behind + before)
    counts = [step.scalar(one) if isinstance(one, Sum) else one for one in (number, size)]
    words = {"may_fail": False, "fills": False}
    room = step.shape(name)[axis]
    places = counted_places.places(step, places, counts[:1], [room], counts[1:], **words)
    made = step("Gather", name, places, axis=axis)
    if mode != "constant":
        return made
    inside = step("And", step("LessOrEqual", zero, own), step("LessOrEqual", own, end))
    form = [-1 if at == axis else 1 for at in range(len(step.shape(name)))]
    return step("Where", step.reshape(inside, *form), made, _value(step, name))


def _value(step: Step, name: str) -> str:
    """The value that a Pad lays around a tensor."""
    given = step.input(2)
    return step.reshape(given) if given else step.constant(0, step.dtype(name))


def _padded(step: Step, name: str, axis: int, before: int, number: Number, behind: Number) -> str:
    """A tensor padded with the value around what counts along an axis."""
    total = most(number + (behind + before))
    size = min(step.shape(name)[axis], total - before)
    name = step.cut(name, axis, size)
    room = [(before, total - before - size)]
    shape = list(step.shape(name))
    value = _value(step, name)
    parts = []
    for extent in room[0]:
        shape[axis] = extent
        parts.append(step("Expand", value, step.numbers(*shape)) if extent else "")
    made = [one for one in (parts[0], name, parts[1]) if one]
    whole = step("Concat", *made, axis=axis) if len(made) > 1 else name
    if not isinstance(number, Sum):
        return whole
    inside = step.counts(step.shape(whole), {axis: number + before})
    return step("Where", inside, whole, value)


RULES = {"Concat": joined, "Pad": padded, "Slice": sliced, "Split": split}
