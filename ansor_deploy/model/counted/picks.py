"""Rules for nodes that pick or place elements by index: indices that do not count become 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph.graph import FLOATS
from ..operators import counted_places
from .known import Axes, Step
from .numbers import Number, Sum, least, most
from .spread import listed
from .sums import highest, lowest


def gathered(step: Step) -> list[tuple[str, Axes]] | None:
    """Slices at places along an axis."""
    data, places = (step.known_shape(step.input(at)) for at in (0, 1))
    if not data or places is None:
        return None
    axis = step.attribute("axis", 0) % len(data)
    own, asked = step.axes(0), step.axes(1)
    index = _in_range(step, axis, bool(asked) and (axis in own or len(asked) > 1))
    moved = {at if at < axis else at + len(places) - 1: n for at, n in own.items() if at != axis}
    axes = {**moved, **{at + axis: n for at, n in asked.items()}}
    made = step("Gather", step.input(0), index, axis=axis)
    if (values := _looked_up(step)) is not None:
        step.facts.hold(made, values)
    return [(made, axes)]


def _in_range(step: Step, axis: int, many: bool) -> str:
    """The places along an axis. many: those that count are checked alone, such as pairs."""
    if many:
        return _checked(step, step.input(1), axis, 1, step.dims(1), fills=True)
    room = step.shape(step.input(0))[axis]
    return step.masked(_from_the_front(step, axis, [room]), step.axes(1))


def _looked_up(step: Step) -> np.ndarray | None:
    known = step.values(0), step.values(1)
    if known[0] is None or known[1] is None or any(isinstance(n, Sum) for n in known[1].flat):
        return None
    return np.asarray(np.take(known[0], known[1].astype(np.int64), step.attribute("axis", 0)))


def _from_the_front(step: Step, axis: int, beyond: Sequence[int]) -> str:
    """The places, of which negative ones count from the end of what counts.

    axis: the axis of the data that they are along, or the first of several, one for each place of
    their last axis. beyond: for each of these, what stands for a place out of range, so that the
    operator's own check finds it.
    """
    index, known = step.input(1), step.listed(1)
    extents = step.dims(0)[axis : axis + len(beyond)]
    may_fail = step.node.output[0] not in step.facts.idle
    bounds = [least(one) for one in extents] if may_fail else beyond
    pairs = [(n, bounds[at % len(bounds)]) for at, n in enumerate(known or ())]
    is_checked = extents == list(beyond)
    if is_checked or (known is not None and all(0 <= n < bound for n, bound in pairs)):
        return index
    ends, others = (step.cast(_of_all(step, one), step.dtype(index)) for one in (extents, beyond))
    zero = step.constant(0, step.dtype(index))
    made = step("Where", step("Less", index, zero), step("Add", index, ends), index)
    if known is not None and all(-bound <= n < bound for n, bound in pairs):
        return made
    is_inside = step("And", step("Less", made, ends), step("Not", step("Less", made, zero)))
    return step("Where", is_inside, made, others if may_fail else zero)


def _of_all(step: Step, numbers: Sequence[Number]) -> str:
    """A scalar of one number, or a list of several."""
    return step.scalar(numbers[0]) if len(numbers) == 1 else listed(step, list(numbers))


def gathered_each(step: Step) -> list[tuple[str, Axes]] | None:
    """An element for each place; along other axes there are no more places than elements."""
    data = step.known_shape(step.input(0))
    if not data or step.known_shape(step.input(1)) is None:
        return None
    axis = step.attribute("axis", 0) % len(data)
    index = _in_range(step, axis, len(step.axes(1)) > 1)
    return [(step("GatherElements", step.input(0), index, axis=axis), step.axes(1))]


def gathered_slices(step: Step) -> list[tuple[str, Axes]] | None:
    """A slice for each row of places; the first axes may be a batch of both."""
    data, places = (step.known_shape(step.input(at)) for at in (0, 1))
    batch = step.attribute("batch_dims", 0)
    if not data or not places:
        return None
    last, looked = len(places) - 1, places[-1]
    if last in step.axes(1):
        return None
    rows = _from_the_front(step, batch, data[batch : batch + looked])
    name, index = step.input(0), step.masked(rows, step.axes(1))
    for at in range(batch):
        size = min(step.shape(one)[at] for one in (name, index))
        name, index = (step.cut(one, at, size) for one in (name, index))
    own = {at: n for at, n in step.axes(0).items() if not batch <= at < batch + looked}
    moved = {at if at < batch else at - batch - looked + last: n for at, n in own.items()}
    made = step("GatherND", name, index, batch_dims=batch or None)
    return [(made, {**moved, **step.axes(1)})]


def scattered_slices(step: Step) -> list[tuple[str, Axes]] | None:
    """Data with slices written at rows of places; those that do not count go to an extra slice."""
    data, places = (step.known_shape(step.input(at)) for at in (0, 1))
    if not data or not places or len(places) - 1 in step.axes(1):
        return None
    asked, looked = step.axes(1), places[-1]
    if not asked and not any(isinstance(n, Sum) for n in step.dims(0)[:looked]):
        return [(step.again(), step.axes(0))]
    index, updates = _alike(step, asked, step.input(1))
    sizes = [asked.get(at, n) for at, n in enumerate(step.shape(index))]
    rows = _checked(step, index, 0, looked, sizes)
    return _placed(step, rows, updates, None, [*sizes[:-1], *step.dims(0)[looked:]])


def scattered(step: Step) -> list[tuple[str, Axes]] | None:
    """Data with elements written at places along an axis."""
    data = step.known_shape(step.input(0))
    if not data or step.known_shape(step.input(1)) is None:
        return None
    axis = step.attribute("axis", 0) % len(data)
    asked, how = step.axes(1), step.attribute("reduction")
    if how in (None, "none") and _is_replaced(step, axis):
        return [(step.input(2), step.axes(2))]  # as in torch's select_scatter
    if not asked and not isinstance(step.dims(0)[axis], Sum):
        return [(step.again(), step.axes(0))]
    index, updates = _alike(step, asked, step.input(1))
    sizes = [asked.get(at, n) for at, n in enumerate(step.shape(index))]
    index = _checked(step, index, axis, 1, sizes)
    return _placed(step, index, updates, axis, sizes)


def _checked(
    step: Step, index: str, axis: int, axes: int, sizes: Sequence[Number], *, fills: bool = False
) -> str:
    """Places in range, by a loop over those that count.

    axis: the first axis of the data that they are along. axes: how many. sizes: of the places.
    """
    may_fail = step.node.output[0] not in step.facts.idle
    part = slice(axis, axis + axes)
    extents, rooms = step.dims(0)[part], step.shape(step.input(0))[part]
    ends, counts = (_named(step, one) for one in (extents, sizes))
    words = {"may_fail": may_fail, "fills": fills}
    return counted_places.places(step, index, ends, rooms, counts, **words)


def _placed(
    step: Step, index: str, updates: str, axis: int | None, sizes: Sequence[Number]
) -> list[tuple[str, Axes]]:
    """The data with those updates that count. sizes: of the updates."""
    how, given = step.attribute("reduction") or "none", (step.input(0), index, updates)
    counts = (_named(step, one) for one in (sizes, step.dims(0)))
    return [(counted_places.placed(step, given, axis, how, *counts), step.axes(0))]


def _named(step: Step, numbers: Sequence[Number]) -> list[int | str]:
    return [step.scalar(one) if isinstance(one, Sum) else one for one in numbers]


def _is_replaced(step: Step, axis: int) -> bool:
    """Whether the data has one element along the axis, and all places are this one."""
    alike = step.dims(0) == step.dims(1) == step.dims(2)
    if not alike or step.dims(0)[axis] != 1:
        return False
    held = step.graph.value(step.input(1))
    places = step.facts.equal.get(step.input(1)) if held is None else held
    return places is not None and bool(np.isin(places, (0, -1)).all())


def _alike(step: Step, asked: Axes, index: str) -> tuple[str, str]:
    """Places and updates, cut to the same size."""
    updates = step.input(2)
    for axis in asked:
        room = min(step.shape(one)[axis] for one in (index, updates))
        index, updates = (step.cut(one, axis, room) for one in (index, updates))
    return index, updates


def first_of_order(step: Step) -> list[tuple[str, Axes]] | None:
    """The k largest or smallest elements of each row."""
    shape, values = step.known_shape(step.input(0)), step.values(1)
    if not shape or values is None:
        return None
    axis, k = step.attribute("axis", -1) % len(shape), values.reshape(-1)[0]
    if isinstance(k, int) and k > shape[axis]:
        return None  # there are never so many
    own, size = step.axes(0), min(most(k), shape[axis])
    name = step.input(0)
    within = {at: n for at, n in own.items() if at == axis}
    data = step.masked(name, within, _last(step, name)) if within else name
    words = {n: step.attribute(n, 1) for n in ("largest", "sorted")}
    made = step.several("TopK", [data, step.numbers(max(0, size))], 2, axis=axis, **words)
    axes = {**own, axis: k}
    return [(one, axes) for one in made]


def _last(step: Step, name: str) -> float | int:
    """A value that comes behind all others in order."""
    if step.attribute("largest", 1):
        return lowest(step, name)
    return np.nan if step.dtype(name) in FLOATS else highest(step, name)


def pooled_regions(step: Step) -> list[tuple[str, Axes]] | None:
    """Pooled regions of images."""
    number = step.axes(1).get(0, step.axes(2).get(0))
    if step.axes(0) or {*step.axes(1), *step.axes(2)} - {0} or number is None:
        return None
    size = min(step.shape(step.input(at))[0] for at in (1, 2))
    regions, images = (step.cut(step.input(at), 0, size) for at in (1, 2))
    # Regions that do not count are arbitrary, and could be of any size.
    regions = step.masked(regions, {0: number})
    return [(step.again(step.input(0), regions, step.masked(images, {0: number})), {0: number})]


RULES = {
    "Gather": gathered,
    "GatherElements": gathered_each,
    "GatherND": gathered_slices,
    "RoiAlign": pooled_regions,
    "Scatter": scattered,
    "ScatterElements": scattered,
    "ScatterND": scattered_slices,
    "TopK": first_of_order,
}
