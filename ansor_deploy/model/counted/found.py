"""Nodes that count: their results have room for the most there can be, and a number."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto

from ..operators.emitter import INT64
from .known import Axes, Step
from .numbers import Number, most, symbol

BOOL = TensorProto.BOOL
_MOST_COLUMNS = 32  # the most columns of rows that are sorted, which takes a sort for each


def nonzero(step: Step) -> list[tuple[str, Axes]] | None:
    """The places of nonzero elements, a row for each axis."""
    name = step.input(0)
    if not step.known_shape(name):
        return None
    if (held := step.graph.value(name)) is not None:
        return [(step.constant(np.array(np.nonzero(held)), INT64), {})]
    if len(step.shape(name)) == 1 and step.facts.equal.get(name):  # as torch writes a slice
        (size,) = step.shape(name)
        return [(step.constant(np.arange(size)[None], INT64), {1: step.dims(0)[0]})]
    places, number = places_of(step, name, step.axes(0))
    return [(places, {1: number})]


def places_of(step: Step, name: str, axes: Axes) -> tuple[str, Number]:
    """Where a tensor is not zero, and how often; computed once for each tensor."""
    known, shape = step.facts, step.shape(name)
    if (done := known.found.get(name)) is None:
        made = step.several("NonZero", [step.masked(name, axes)], 2)
        step.graph.declare(made[0], INT64, (len(shape), prod(shape)))
        step.graph.declare(made[1], INT64, ())
        done = known.found[name] = (made[0], made[1])
    size = prod(most(axes.get(at, n)) for at, n in enumerate(shape))
    return done[0], symbol(done[1], 0, (0, size), step.cause)


def suppressed(step: Step) -> list[tuple[str, Axes]] | None:
    """The rows of the boxes that are kept."""
    boxes, scores = (step.known_shape(step.input(at)) for at in (0, 1))
    limit = step.listed(2) if step.input(2) else [0]
    counted = step.axes(0).get(1) or step.axes(1).get(2)
    if not boxes or not scores or not limit or {*step.axes(0)} - {1} or {*step.axes(1)} - {2}:
        return None
    each = max(0, min(limit[0], boxes[1]))
    rows = boxes[0] * scores[1] * each
    if not rows:
        return [(step.constant(np.zeros((0, 3)), INT64), {})]
    optional = [step.input(3), step.input(4), step.scalar(counted) if counted is not None else ""]
    given = [step.input(0), step.input(1), step.numbers(each), *optional]
    centers = step.attribute("center_point_box", 0)
    made, count = step.several("NonMaxSuppression", given, 2, center_point_box=centers)
    step.graph.declare(made, INT64, (rows, 3))
    step.graph.declare(count, INT64, ())
    return [(made, {0: symbol(count, 0, (0, rows), step.cause)})]


def compress(step: Step) -> list[tuple[str, Axes]] | None:
    """The slices along an axis for which a condition holds."""
    axis, chosen = step.attribute("axis"), step.input(1)
    if step.known_shape(chosen) is None or step.known_shape(step.input(0)) is None:
        return None
    if axis is None and step.axes(0):
        return None
    data = step.input(0) if axis is not None else step.reshape(step.input(0), -1)
    axis = (axis or 0) % len(step.shape(data))
    places, number = places_of(step, chosen, step.axes(1))
    taken = step("Gather", data, step.reshape(places, -1), axis=axis)
    return [(taken, {**step.axes(0), axis: number})]


def unique(step: Step) -> list[tuple[str, Axes]] | None:
    """Each distinct element, or slice along an axis, once: sorted, or in order of appearance."""
    data, axis = step.input(0), step.attribute("axis")
    shape = step.known_shape(data)
    if shape is None or not prod(shape) or step.axes(0):
        return None
    if axis is not None:
        axis %= len(shape)
        order = [axis, *(at for at in range(len(shape)) if at != axis)]
        data = step("Transpose", data, perm=order)
        shape = tuple(shape[at] for at in order)
    rows = step.reshape(data, shape[0], -1) if axis is not None else step.reshape(data, -1, 1)
    if step.shape(rows)[1] > _MOST_COLUMNS:
        raise step.refuse(f"rows of more than {_MOST_COLUMNS} elements are not put in order")
    first, inverse, counts, number = _distinct(step, rows, sort=step.attribute("sorted", 1))
    source = data if axis is not None else step.reshape(data, -1)
    values = step("Gather", source, first, axis=0)
    if axis is not None:
        values = step("Transpose", values, perm=np.argsort(order).tolist())
    axes = {0: number}
    return [(values, {axis or 0: number}), (first, axes), (inverse, {}), (counts, axes)]


def _distinct(step: Step, rows: str, *, sort: int) -> tuple[str, str, str, Number]:
    """(the first place of each distinct row, each row's group, the groups' sizes, their number)."""
    n = step.shape(rows)[0]
    order, changed = _in_order(step, rows)
    starts, number = places_of(step, changed, {})
    starts = step.reshape(starts, -1)
    first = step("Gather", order, starts, axis=0)
    ends = (
        step("Concat", step.slice(starts, 0, 1, n), step.numbers(n), axis=0)
        if n > 1
        else step.numbers(n)
    )
    last = step(
        "Less",
        step.constant(np.arange(n), INT64),
        step("Sub", step.scalar(number), step.numbers(1)),
    )
    counts = step("Sub", step("Where", last, ends, step.numbers(n)), starts)
    groups = step(
        "Sub", step("CumSum", step.cast(changed, INT64), step.constant(0, INT64)), step.numbers(1)
    )
    if not sort:
        far = step.masked(first, {0: number}, n)
        _, found = step.several("TopK", [far, step.numbers(n)], 2, axis=0, largest=0, sorted=1)
        first, counts = (step("Gather", one, found, axis=0) for one in (first, counts))
        _, rank = step.several("TopK", [found, step.numbers(n)], 2, axis=0, largest=0, sorted=1)
        groups = step("Gather", rank, groups, axis=0)
    inverse = step("ScatterElements", step.constant(np.zeros(n), INT64), order, groups, axis=0)
    return first, inverse, counts, number


def _in_order(step: Step, rows: str) -> tuple[str, str]:
    """(a stable order of the rows, whether each differs from the one before it in that order)."""
    n, columns = step.shape(rows)
    order = step.constant(np.arange(n), INT64)
    for column in reversed(range(columns)):
        keys = step.reshape(step.slice(rows, 1, column, column + 1), -1)
        given = [step("Gather", keys, order, axis=0), step.numbers(n)]
        _, places = step.several("TopK", given, 2, axis=0, largest=0, sorted=1)
        order = step("Gather", order, places, axis=0)
    ordered = step("Gather", rows, order, axis=0)
    if n == 1:
        return order, step.constant([1], BOOL)
    same = step("Equal", step.slice(ordered, 0, 1, n), step.slice(ordered, 0, 0, n - 1))
    other = step.cast(step("Not", same), INT64)
    differs = step.reshape(step.reduce("ReduceMax", other, 1), -1)
    return order, step.cast(step("Concat", step.numbers(1), differs, axis=0), BOOL)


RULES = {
    "NonZero": nonzero,
    "NonMaxSuppression": suppressed,
    "Compress": compress,
    "Unique": unique,
}
