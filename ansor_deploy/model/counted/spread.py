"""Rules for nodes that make tensors of computed sizes, and for those that return sizes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from onnx import TensorProto, numpy_helper

from ..operators.emitter import INT64
from .known import Axes, Step
from .numbers import Number, Sum, least, most, symbol
from .reshapes import into
from .shares import is_whole, raised
from .values import Values, certain, objects


def sizes(values: Values) -> tuple[tuple[int, ...], Axes]:
    """The largest shape that a list of sizes can be, and its counted axes."""
    numbers: list[Number] = list(values.reshape(-1))
    counted = {at: number for at, number in enumerate(numbers) if isinstance(number, Sum)}
    return tuple(max(0, most(number)) for number in numbers), counted


def shape_of(step: Step) -> list[tuple[str, Axes]] | None:
    """How much of a tensor counts along each axis."""
    if step.known_shape(step.input(0)) is None:
        return None
    dims = step.dims(0)
    return [(listed(step, dims[step.attribute("start", 0) : step.attribute("end", len(dims))]), {})]


def listed(step: Step, numbers: list[Number]) -> str:
    """A tensor of numbers."""
    if not any(isinstance(number, Sum) for number in numbers):
        return step.numbers(*map(most, numbers))
    parts = [step.reshape(step.scalar(number), 1) for number in numbers]
    made = step("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]
    step.facts.hold(made, objects(numbers))
    return made


def size_of(step: Step) -> list[tuple[str, Axes]] | None:
    """How many elements of a tensor count."""
    numbers = [number for number in step.dims(0) if isinstance(number, Sum)]
    if len(numbers) != 1:
        return None
    rest = prod(most(number) for number in step.dims(0) if not isinstance(number, Sum))
    made = step.scalar(numbers[0] * rest)
    step.facts.hold(made, objects(numbers[0] * rest))
    return [(made, {})]


def filled(step: Step) -> list[tuple[str, Axes]] | None:
    """One value in all elements."""
    if (values := step.values(0)) is None:
        return None
    shape, axes = sizes(values)
    step.room_for(*shape)
    given = step.attribute("value")
    item = np.zeros(1, np.float32) if given is None else numpy_helper.to_array(given)
    kind = TensorProto.FLOAT if given is None else given.data_type
    if item.dtype.kind in "iub":
        step.facts.equal[step.node.output[0]] = int(item.item())
    return [(step.constant(np.full(shape, item.reshape(())), kind), axes)]


def ranged(step: Step) -> list[tuple[str, Axes]] | None:
    """Numbers from a start to before a limit, in integer steps, up or down."""
    given = [step.values(at) for at in range(3)]
    if any(one is None for one in given):
        return None
    start, limit, delta = (one.item() for one in given)  # type: ignore[union-attr]
    if isinstance(delta, Sum) or not delta or not is_whole(delta):
        return None
    length = raised(limit - start if delta > 0 else start - limit)
    if length is None or (isinstance(start, Sum) and not is_whole(start)):
        return None
    by = abs(delta)
    room = length + (by - 1)
    size = max(0, most(room) // by)
    step.room_for(size)
    number = room if by == 1 and least(room) >= 0 else _steps(step, room, by)
    kind = step.dtype(step.input(0))
    if not isinstance(start, Sum):
        return [(step.constant(np.arange(size) * delta + float(start), kind), {0: number})]
    places = step.constant(np.arange(size) * delta, INT64)
    made = step("Add", places, step.scalar(start))
    return [(made if kind == INT64 else step.cast(made, kind), {0: number})]


def _steps(step: Step, room: Number, by: int) -> Number:
    """How many whole steps fit."""
    positive = step("Max", step.scalar(room), step.constant(0, INT64))
    made = step("Div", positive, step.constant(by, INT64))
    bounds = max(0, least(room) // by), max(0, most(room) // by)
    return symbol(made, 0, bounds, room.cause if isinstance(room, Sum) else step.cause)


def expanded(step: Step) -> list[tuple[str, Axes]] | None:
    """A tensor broadcast to a shape; its own size stays where that is larger."""
    values, shape = step.values(1), step.known_shape(step.input(0))
    if values is None or shape is None:
        return None
    wanted, axes = sizes(values)
    if len(given := set(certain(step.values(0)) or ())) == 1:
        step.facts.equal[step.node.output[0]] = given.pop()
    rank = max(len(wanted), len(shape))
    own = {at + rank - len(shape): n for at, n in step.axes(0).items()}
    asked = {at + rank - len(wanted): n for at, n in axes.items()}
    full, form = ((1,) * (rank - len(one)) + tuple(one) for one in (wanted, shape))
    made = [n if m == 1 else m for n, m in zip(full, form, strict=True)]
    taken = {at: n for at, n in asked.items() if form[at] == 1 and at not in own}
    return [(step("Expand", step.input(0), step.numbers(*made)), {**taken, **own})]


def tiled(step: Step) -> list[tuple[str, Axes]] | None:
    """A tensor repeated along its axes."""
    values, shape = step.values(1), step.known_shape(step.input(0))
    if values is None or shape is None:
        return None
    times, axes = sizes(values)
    own = step.axes(0)
    if any(shape[at] != 1 for at in axes):
        return None
    repeated = [at for at in own if times[at] != 1]
    if repeated:
        return [_repeated(step, repeated[0], times)] if not axes and len(repeated) == 1 else None
    return [(step("Tile", step.input(0), step.numbers(*times)), {**own, **axes})]


def _repeated(step: Step, at: int, times: Sequence[int]) -> tuple[str, Axes]:
    """A tensor several times, one copy behind the elements of the other that count.

    The copies are an axis of their own first, which a Reshape behind this often restores.
    """
    shape, dims = step.shape(step.input(0)), step.dims(0)
    apart = step.reshape(step.input(0), *shape[:at], 1, *shape[at:])
    copies = step("Tile", apart, step.numbers(*times[:at], times[at], 1, *times[at + 1 :]))
    step.facts.axes[copies] = {axis + (axis >= at): n for axis, n in step.axes(0).items()}
    step.facts.sources[step.node.output[0]] = copies
    return into(step, copies, [n * by for n, by in zip(dims, times, strict=True)])


RULES = {
    "ConstantOfShape": filled,
    "Expand": expanded,
    "Range": ranged,
    "Shape": shape_of,
    "Size": size_of,
    "Tile": tiled,
}
