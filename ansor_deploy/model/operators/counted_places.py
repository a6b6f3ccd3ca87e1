"""Operators of our own, in no file: check places, and write at them, where some count.

    p = Places(index, n, m)             the first m of index, within n elements
    for i < m: w = index[i] < 0 ? index[i] + n : index[i] ; p[i] = w if 0 <= w < n ; bad |= not so
    assert not bad                      the call of the library fails

    y = Placed(data, p, updates, n, m)  the first n of data, with the first m updates
    for i < n: y[i] = data[i] ; for i < m: y[p[i]] = updates[i]

All tensors have room for the most elements there may be. The loops end where a run says, so
marks on the programs say what they read, and below what the places are: the passes that shorten
other kernels (`codegen/lengths/`) cannot see it in loops that are no blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from ..._lazy_tvm import tirx, tvm
from ..graph.graph import OWN
from .converting import Call
from .emitter import Emitter
from .indices import PLACES, kept_in, out_of_range
from .operator import Operator

# Attribute of a program: for parameters, axes, and numbers, by their positions, that it reads a
# parameter along an axis only below a number.
READS_BELOW = "ansor.reads_below"
# Attribute of a program: the position of the number below which its result's elements are.
IS_BELOW = "ansor.is_below"

Sizes = Sequence[int | str]  # extents of axes, or the names of tensors with how much of them counts


def places(
    emit: Emitter,
    index: str,
    extents: Sizes,
    rooms: Sequence[int],
    sizes: Sizes,
    *,
    may_fail: bool,
    fills: bool,
) -> str:
    """Places of which all that count are in range, and not negative.

    extents: of what they index; one for all, or one for each along their last axis. rooms: the
    largest that these can be, for messages. sizes: of the index. may_fail: whether one out of range
    is an error; else it becomes 0. fills: whether places that do not count become 0; else they may
    be any number.
    """
    numbers = [one for one in dict.fromkeys((*extents, *sizes)) if isinstance(one, str)]
    words = {
        "operator": emit.node.op_type,
        "extents": _positions(extents, numbers),
        "rooms": rooms,
        "sizes": _positions(sizes, numbers),
        "fails": int(may_fail),
        "fills": int(fills),
    }
    return emit.own("Places", [index, *numbers], emit.dtype(index), emit.shape(index), **words)


def placed(
    emit: Emitter, given: Sequence[str], axis: int | None, how: str, sizes: Sizes, own: Sizes
) -> str:
    """Data with updates written or added at places that are in range.

    given: data, places, updates. axis: that of the places; None where each row of places is one.
    sizes, own: those of updates and data.
    """
    numbers = [one for one in dict.fromkeys((*sizes, *own)) if isinstance(one, str)]
    words: dict[str, Any] = {
        "sizes": _positions(sizes, numbers),
        "own": _positions(own, numbers),
        "how": how,
    }
    if axis is not None:
        words["axis"] = axis
    data = given[0]
    return emit.own("Placed", [*given, *numbers], emit.dtype(data), emit.shape(data), **words)


def _positions(sizes: Sizes, numbers: Sequence[str]) -> list[int]:
    """Extents, and -1 less the position for each number."""
    return [one if isinstance(one, int) else -1 - numbers.index(one) for one in sizes]


def convert_places(call: Call) -> Any:
    """The operator as a program."""
    sizes, extents = call.attribute("sizes"), list(call.attribute("extents"))
    marks: dict[str, Any] = {READS_BELOW: _reads(0, sizes, first=1)}
    if len(extents) == 1 and extents[0] < 0:
        marks[IS_BELOW] = -extents[0]
    names = ("operator", "rooms", "fails", "fills")
    loop = _Places(extents, sizes, *map(call.attribute, names))
    words = {"primfunc_name_hint": PLACES, "primfunc_attrs": marks}
    return call.emit(call.bb.call_te(loop.compute, *call.inputs, **words))


def convert_placed(call: Call) -> Any:
    """The operator as a program."""
    sizes, own, axis = call.attribute("sizes"), call.attribute("own"), call.attribute("axis")
    indexed = sizes if axis is not None else sizes[: len(call.shape(1)) - 1]
    reads = [*_reads(0, own, 3), *_reads(1, indexed, 3), *_reads(2, sizes, 3)]
    loop = _Placed(sizes, own, axis, call.attribute("how"))
    words = {"primfunc_name_hint": "placed", "primfunc_attrs": {READS_BELOW: reads}}
    return call.emit(call.bb.call_te(loop.compute, *call.inputs, **words))


def _reads(parameter: int, sizes: Sequence[int], first: int) -> list[list[int]]:
    """Where a program reads a parameter. first: the position of the first number."""
    return [[parameter, axis, first - 1 - n] for axis, n in enumerate(sizes) if n < 0]


def _nest(loops: ExitStack, shape: Sequence[int], sizes: Sequence[int], numbers: Any) -> list[Any]:
    """Loops over the elements that count."""
    T = tvm.script.ir_builder.tirx  # noqa: N806
    ends = [
        n if size >= 0 else _end(numbers, size, n) for n, size in zip(shape, sizes, strict=True)
    ]
    return [loops.enter_context(T.serial(0, end)) for end in ends]


def _end(numbers: Sequence[Any], size: int, most: int) -> Any:
    number = tirx.Cast("int32", tirx.BufferLoad(numbers[-1 - size], []))
    return tirx.Min(number, tirx.const(most, "int32"))


class _Places:
    """The program of Places."""

    def __init__(
        self,
        extents: Sequence[int],
        sizes: Sequence[int],
        operator: str,
        rooms: Sequence[int],
        fails: int,
        fills: int,
    ) -> None:
        self._extents, self._sizes = extents, sizes
        self._fails, self._fills = fails, fills
        self._text = out_of_range(operator, rooms)

    def compute(self, index: Any, *numbers: Any) -> Any:
        """The program in TE."""
        return tvm.te.extern(
            [[int(n) for n in index.shape]], [index, *numbers],
            lambda ins, outs: self._statement(ins[0], ins[1:], outs[0]),
            name="places", dtype=[str(index.dtype)],
        )  # fmt: skip

    def _statement(self, source: Any, numbers: Any, target: Any) -> Any:
        T = tvm.script.ir_builder.tirx  # noqa: N806
        shape = [int(n) for n in source.shape]
        several = len(self._extents) > 1
        x, y = T.buffer_proxy(source), T.buffer_proxy(target)
        with tvm.script.ir_builder.IRBuilder() as builder:
            with T.seq_scope():
                fault = T.buffer_proxy(T.alloc_buffer((1,), "int32"))
                fault[0] = 0
                if self._fills:
                    with ExitStack() as loops:
                        at = _nest(loops, shape, shape, numbers)
                        y[tuple(at)] = tirx.const(0, str(source.dtype))
                with ExitStack() as loops:
                    outer = len(shape) - several
                    at = _nest(loops, shape[:outer], self._sizes[:outer], numbers)
                    for place, extent in enumerate(self._extents):
                        where = (*at, place) if several else tuple(at)
                        self._one(x, y, where, self._extent(extent, numbers, source), fault)
                if self._fails:
                    with T.Assert(tirx.EQ(fault[0], 0), self._text, "IndexError"):
                        pass
            return builder.get()

    def _extent(self, extent: int, numbers: Any, source: Any) -> Any:
        kind = str(source.dtype)
        if extent >= 0:
            return tirx.const(extent, kind)
        return tirx.Cast(kind, tirx.BufferLoad(numbers[-1 - extent], []))

    def _one(self, x: Any, y: Any, at: Any, extent: Any, fault: Any) -> None:
        y[at], outside = kept_in(x[at], extent, tirx.const(0, str(extent.ty.dtype)))
        fault[0] = fault[0] | tirx.Cast("int32", outside)


class _Placed:
    """The program of Placed."""

    def __init__(
        self, sizes: Sequence[int], own: Sequence[int], axis: int | None, how: str
    ) -> None:
        self._sizes, self._own, self._axis, self._how = sizes, own, axis, how

    def compute(self, data: Any, index: Any, updates: Any, *numbers: Any) -> Any:
        """The program in TE."""
        return tvm.te.extern(
            [[int(n) for n in data.shape]], [data, index, updates, *numbers],
            lambda ins, outs: self._statement(ins[:3], ins[3:], outs[0]),
            name="placed", dtype=[str(data.dtype)],
        )  # fmt: skip

    def _statement(self, given: Any, numbers: Any, target: Any) -> Any:
        T = tvm.script.ir_builder.tirx  # noqa: N806
        data, index, updates = given
        d, i, u, y = map(T.buffer_proxy, (*given, target))
        with tvm.script.ir_builder.IRBuilder() as builder:
            with T.seq_scope():
                with ExitStack() as loops:
                    at = tuple(_nest(loops, [int(n) for n in data.shape], self._own, numbers))
                    y[at] = d[at]
                with ExitStack() as loops:
                    shape = [int(n) for n in updates.shape]
                    at = tuple(_nest(loops, shape, self._sizes, numbers))
                    to = self._to(i, at, [int(n) for n in index.shape])
                    y[to] = _REDUCED[self._how](y[to], u[at])
            return builder.get()

    def _to(self, index: Any, at: tuple[Any, ...], shape: Sequence[int]) -> tuple[Any, ...]:
        """Where an update is written."""
        if self._axis is not None:
            place = tirx.Cast("int32", index[at])
            return tuple(place if k == self._axis else one for k, one in enumerate(at))
        rows = len(shape) - 1
        rows_at = [(*at[:rows], k) for k in range(shape[-1])]
        return (*(tirx.Cast("int32", index[one]) for one in rows_at), *at[rows:])


# NaN stays, as in every other maximum and minimum.
_REDUCED = {
    "none": lambda _, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": lambda old, new: tirx.Select(tirx.Or(new > old, tirx.NE(new, new)), new, old),
    "min": lambda old, new: tirx.Select(tirx.Or(new < old, tirx.NE(new, new)), new, old),
}  # fmt: skip

OPERATORS = (
    Operator("Places", OWN, convert=convert_places),
    Operator("Placed", OWN, convert=convert_placed),
)
