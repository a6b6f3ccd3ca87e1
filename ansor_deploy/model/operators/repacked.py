"""Operators of our own, in no file: move the elements that count when runs decide extents.

    y = Repacked(x, h, w, n)     x: [h, w, ..], y: [n, ..], n = h * w
    y[k] = x[k / w, k % w]

    y = Behind(a, b, n, m)       y[k] = a[k] if k < n else b[k - n]

All tensors have room for the most elements there may be, so the elements that count are not
contiguous as in a tensor of exact size. Places of y that do not count hold copies of elements that
do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

from ..._lazy_tvm import tirx, tvm
from ..graph.graph import OWN
from .converting import Call
from .emitter import Emitter
from .operator import Operator

_COUNT = "int32"  # the type of elements' numbers: no tensor has room for more


def repack(
    emit: Emitter, data: str, own: Sequence[str], sizes: Sequence[str], rooms: Sequence[int]
) -> str:
    """Reshape the first axes of a tensor to others with as many elements that count.

    own: how much counts along each of the axes; none is zero. sizes, rooms: the same, and the
    extents, of the new axes.
    """
    axes = len(own)
    shape = (*rooms, *emit.shape(data)[axes:])
    given = [data, *own, *sizes]
    return emit.own("Repacked", given, emit.dtype(data), shape, axes=axes, rooms=rooms)


def converted(call: Call) -> Any:
    """The operator as a function in TE."""
    data, *numbers = call.inputs
    axes, rooms = call.attribute("axes"), call.attribute("rooms")
    words = {"primfunc_name_hint": "repacked"}
    return call.emit(call.bb.call_te(_repacked, data, numbers, axes, list(rooms), **words))


def lay_behind(
    emit: Emitter, parts: Sequence[str], numbers: Sequence[str], axis: int, room: int
) -> str:
    """Concatenate the parts of tensors that count. numbers: how much counts, for each tensor."""
    shape = tuple(room if at == axis else n for at, n in enumerate(emit.shape(parts[0])))
    given = [*parts, *numbers]
    return emit.own("Behind", given, emit.dtype(parts[0]), shape, axis=axis, room=room)


def laid_behind(call: Call) -> Any:
    """The operator as a function in TE."""
    count = len(call.inputs) // 2
    parts, numbers = list(call.inputs[:count]), list(call.inputs[count:])
    room = call.attribute("axis"), call.attribute("room")
    return call.emit(call.bb.call_te(_behind, parts, numbers, *room, primfunc_name_hint="behind"))


def _behind(parts: Sequence[Any], numbers: Sequence[Any], axis: int, room: int) -> Any:
    """Behind, in TE."""
    sizes = [number() for number in numbers]
    zero = tirx.const(0, "int64")
    begins = list(accumulate(sizes[:-1], initial=zero))

    def element(*place: Any) -> Any:
        at = tirx.Cast("int64", place[axis])
        last = [tirx.Min(at - begin, n - 1) for begin, n in zip(begins, sizes, strict=True)]
        *others, value = [
            part[tuple(tirx.Max(own, zero) if k == axis else one for k, one in enumerate(place))]
            for part, own in zip(parts, last, strict=True)
        ]
        for one, end in zip(others[::-1], begins[:0:-1], strict=True):
            value = tirx.if_then_else(at < end, one, value)
        return value

    shape = [room if at == axis else n for at, n in enumerate(parts[0].shape)]
    return tvm.te.compute(shape, element, name="behind")


def _repacked(data: Any, numbers: Sequence[Any], axes: int, rooms: Sequence[int]) -> Any:
    """Repacked, in TE."""
    parts = numbers[:axes], numbers[axes:]
    own, sizes = ([tirx.Cast(_COUNT, number()) for number in some] for some in parts)

    def element(*place: Any) -> Any:
        made = [tirx.Cast(_COUNT, one) for one in place[: len(rooms)]]
        flat = reduce(lambda done, one: done * one[1] + one[0], zip(made, sizes, strict=True), 0)
        index = [*_index(flat, own), *place[len(rooms) :]]
        return data[tuple(index)]

    shape = [*rooms, *data.shape[axes:]]
    return tvm.te.compute(shape, element, name="repacked")


def _index(flat: Any, sizes: Sequence[Any]) -> list[Any]:
    """The place of an element, by its number, along axes of these sizes; capped at the last.

    Quotients of 32-bit integers in float64 are never rounded up to the next integer, and x86 has
    vectors of these divisions alone. Remainders need no cap: it says how much is read.
    """
    rests = []
    for size in sizes[:0:-1]:
        whole = tirx.Cast(_COUNT, tirx.Div(*(tirx.Cast("float64", one) for one in (flat, size))))
        rests.append(tirx.Min(flat - whole * size, size - 1))
        flat = whole
    return [tirx.Cast("int64", one) for one in (tirx.Min(flat, sizes[0] - 1), *rests[::-1])]


OPERATORS = (
    Operator("Repacked", OWN, convert=converted),
    Operator("Behind", OWN, convert=laid_behind),
)
