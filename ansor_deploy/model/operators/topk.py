"""TopK: the first elements of each row in order, and their places, as generated code.

    heap = the first k elements of the row, with the last of them in order at the top
    for t in k .. n:  if x[t] comes before the top: it takes its place       O(n log k)
    for e in k .. 1:  the top goes to place e                                O(k log k)

Elements are compared by *ranks*: integers that are larger, the earlier an element comes. So NaN is
larger than infinity, as in ONNX Runtime, and both zeros are equal. Of equal elements the first in
the row comes first, whether the largest or the smallest are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..._lazy_tvm import relax, tirx, tvm
from .converting import Call
from .operator import INTEGER, REAL, Operator

# With at least this many elements, a parallel loop is faster despite its start.
_WORTH_THREADS = 1 << 14
_BLOCK = 64  # elements of a row that are tested together


def topk(call: Call) -> Any:
    """The k largest or smallest along an axis, in order, and their places."""
    shape, kind = call.shape(0), call.dtype(0)
    axis = call.attribute("axis", -1) % len(shape)
    count = call.value(1)
    k = call.attribute("k") if count is None else int(count.reshape(()))
    if not 0 <= k <= shape[axis]:
        raise ValueError(f"k is {k}, and the axis has {shape[axis]} elements")
    made = [*shape[:axis], k, *shape[axis + 1 :]]
    if not prod(made):
        empty = [relax.const(np.zeros(made, one), one) for one in (kind, "int64")]
        return relax.Tuple(empty)
    order = [at for at in range(len(shape)) if at != axis]
    rows = prod(shape[at] for at in order)
    wide = "float32" if kind in ("float16", "bfloat16") else kind
    data = call.emit(relax.op.astype(call.inputs[0], wide)) if wide != kind else call.inputs[0]
    if axis != len(shape) - 1:
        data = call.emit(relax.op.permute_dims(data, [*order, axis]))
    data = call.emit(relax.op.reshape(data, (rows, shape[axis])))
    select = _Selection(rows, shape[axis], k, wide, bool(call.attribute("largest", 1)))
    found = call.emit(call.bb.emit_te(select.compute, data, primfunc_name_hint="topk"))
    values, places = (
        _in_place(call, relax.TupleGetItem(found, at), [*(shape[n] for n in order), k], axis)
        for at in (0, 1)
    )
    if wide != kind:
        values = call.emit(relax.op.astype(values, kind))
    return relax.Tuple([values, places])


def _in_place(call: Call, rows: Any, shape: Sequence[int], axis: int) -> Any:
    """Results in a shape, with the last axis moved to where it belongs."""
    made = call.emit(relax.op.reshape(rows, shape))
    last = len(shape) - 1
    if axis == last:
        return made
    order = [*range(axis), last, *range(axis, last)]
    return call.emit(relax.op.permute_dims(made, order))


@dataclass(frozen=True)
class _Selection:
    """The first k of n elements in each of some rows. kind: the type of the elements."""

    rows: int
    n: int
    k: int
    kind: str
    largest: bool

    def compute(self, data: Any) -> Any:
        """In TE: the elements and their places, [rows, k] each."""
        shape = (self.rows, self.k)
        build = lambda ins, outs: _Program(self, ins[0], *outs).build()  # noqa: E731
        return tvm.te.extern([shape, shape], [data], build, name="topk", dtype=[self.kind, "int64"])

    @property
    def rank_type(self) -> str:
        """The type of ranks."""
        if self.kind in ("uint32", "uint64"):
            return self.kind
        return "int64" if self.kind in ("float64", "int64") else "int32"

    def rank(self, value: Any) -> Any:
        """An integer that is larger, the earlier an element comes."""
        rank = self._ordered(value) if "float" in self.kind else tirx.Cast(self.rank_type, value)
        return rank if self.largest else tirx.bitwise_not(rank)

    def _ordered(self, value: Any) -> Any:
        """A float as an ordered integer: its bits, all but the sign flipped if it is negative."""
        kind = self.rank_type
        bits = tirx.reinterpret(kind, value)
        highest, zero = tirx.max_value(kind), tirx.const(0, kind)
        turned = tirx.Select(bits < zero, tirx.bitwise_xor(bits, highest), bits)
        number = tirx.Select(tirx.EQ(value, tirx.const(0, self.kind)), zero, turned)
        return tirx.Select(tirx.isnan(value), highest, number)


class _Program:
    """The statements of a selection: a heap of ranks and places, sorted at the end."""

    def __init__(self, what: _Selection, source: Any, values: Any, places: Any) -> None:
        self.what, self.T = what, tvm.script.ir_builder.tirx
        self.x, self.values, self.places = map(self.T.buffer_proxy, (source, values, places))

    def build(self) -> Any:
        """The whole statement."""
        T, what = self.T, self.what  # noqa: N806
        parallel = what.rows > 1 and what.rows * what.n >= _WORTH_THREADS
        with tvm.script.ir_builder.IRBuilder() as builder:
            with T.seq_scope():
                self.ranks = T.buffer_proxy(T.alloc_buffer((what.rows, what.k), what.rank_type))
                with (T.parallel if parallel else T.serial)(0, what.rows) as self.row:
                    self._row()
            return builder.get()

    def _row(self) -> None:
        T, what = self.T, self.what  # noqa: N806
        self.hole, self.child = self._scalar("int32"), self._scalar("int32")
        self.rank, self.place = self._scalar(what.rank_type), self._scalar("int64")
        self._fill()
        self._go_on()
        self._sort()
        with T.serial(0, what.k) as at:
            self.values[self.row, at] = self.x[self.row, self.places[self.row, at]]

    def _scalar(self, kind: str) -> Any:
        return self.T.buffer_proxy(self.T.alloc_buffer((1,), kind, scope="local"))

    def _rank(self, at: Any) -> Any:
        return self.what.rank(self.x[self.row, at])

    def _fill(self) -> None:
        """Make a heap of the first elements."""
        T, k = self.T, self.what.k  # noqa: N806
        with T.serial(0, k) as at:
            self.ranks[self.row, at] = self._rank(at)
            self.places[self.row, at] = tirx.Cast("int64", at)
        with T.serial(0, k // 2) as at:
            self._take(k // 2 - 1 - at)
            self._settle(k // 2 - 1 - at, k)

    def _go_on(self) -> None:
        """Let each element that comes before the heap's top take its place.

        Most elements do not. So the best of a block is found first, in vectors, and the block is
        skipped if even that one does not.
        """
        T, what = self.T, self.what  # noqa: N806
        blocks = (what.n - what.k) // _BLOCK
        with T.serial(0, blocks) as block:
            begin = what.k + block * _BLOCK
            self.rank[0] = tirx.min_value(what.rank_type)
            with T.serial(0, _BLOCK) as lane:
                self.rank[0] = tirx.max(self.rank[0], self._rank(begin + lane))
            with T.If(self.rank[0] > self.ranks[self.row, 0]), T.Then():
                self._offer(begin, _BLOCK)
        self._offer(what.k + blocks * _BLOCK, (what.n - what.k) % _BLOCK)

    def _offer(self, begin: Any, count: int) -> None:
        T = self.T  # noqa: N806
        with T.serial(0, count) as step:
            self.rank[0] = self._rank(begin + step)
            with T.If(self.rank[0] > self.ranks[self.row, 0]), T.Then():
                self.place[0] = tirx.Cast("int64", begin + step)
                self._settle(0, self.what.k)

    def _sort(self) -> None:
        """Sort: move the top of the heap behind its end, until it has one element."""
        T, k = self.T, self.what.k  # noqa: N806
        with T.serial(0, k - 1) as step:
            last = k - 1 - step
            self._take(last)
            self.ranks[self.row, last] = self.ranks[self.row, 0]
            self.places[self.row, last] = self.places[self.row, 0]
            self._settle(0, last)

    def _take(self, at: Any) -> None:
        self.rank[0] = self.ranks[self.row, at]
        self.place[0] = self.places[self.row, at]

    def _settle(self, hole: Any, size: Any) -> None:
        """Put the taken element into a hole of a heap, or below it."""
        T = self.T  # noqa: N806
        self.hole[0] = hole
        self.child[0] = 2 * hole + 1
        with T.While(self.child[0] < size):
            with T.If(self.child[0] + 1 < size), T.Then(), T.If(self._second_is_behind()), T.Then():
                self.child[0] = self.child[0] + 1
            with T.If(self._is_behind(self.child[0], (self.rank[0], self.place[0]))):
                with T.Then():
                    self.ranks[self.row, self.hole[0]] = self.ranks[self.row, self.child[0]]
                    self.places[self.row, self.hole[0]] = self.places[self.row, self.child[0]]
                    self.hole[0] = self.child[0]
                    self.child[0] = 2 * self.hole[0] + 1
                with T.Else():
                    self.child[0] = size
        self.ranks[self.row, self.hole[0]] = self.rank[0]
        self.places[self.row, self.hole[0]] = self.place[0]

    def _second_is_behind(self) -> Any:
        return self._is_behind(self.child[0] + 1, self._at(self.child[0]))

    def _at(self, at: Any) -> tuple[Any, Any]:
        return self.ranks[self.row, at], self.places[self.row, at]

    def _is_behind(self, at: Any, other: tuple[Any, Any]) -> Any:
        """Whether an element of the heap comes after another one."""
        (rank, place), (other_rank, other_place) = self._at(at), other
        later = tirx.And(tirx.EQ(rank, other_rank), place > other_place)
        return tirx.Or(rank < other_rank, later)


OPERATORS = (Operator("TopK", types=REAL | INTEGER, constant=(1,), convert=topk),)
