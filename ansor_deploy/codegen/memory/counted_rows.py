"""Let a kernel that reads a cache stop at the rows that count, with otherwise the same loops.

    for j0 in 256: for j1 in 4: out += weights[4 j0 + j1] * cache[4 j0 + j1]
    -->
    for j0 in 256: if 4 j0 < count: for j1 in 4: ..

Behind the last row that counts, what is summed is multiplied by zero, or masked later: it changes
no result. So only additions to a sum are left out, and the initialisation of the sum stays. A
kernel whose loops do not allow that is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._tvm import collect, structural_map, tirx, tvm
from ..blocks import Leaf, at_begin, leaves, outside, within

_FEW = 64  # a loop that reads fewer rows needs no finer guard inside it


@dataclass(frozen=True)
class Rows:
    """How many rows of a cache count, along an axis: `more` than there were before.

    at: the tensor with the number of rows that there were before, for each sample.
    """

    axis: int
    more: int
    at: Any


def counting(func: tirx.PrimFunc, cache: int, rows: Rows, starts: Any) -> tirx.PrimFunc | None:
    """The function with one more argument, the first: how many rows there were before.

    cache: the position of the parameter that is the cache. starts: a buffer for the new argument.
    None where no row could be left out.
    """
    own, known = func.params[cache], list(leaves(func.body))
    guards = [_first_row(leaf, known, own, rows.axis) for leaf in known if leaf.loops]
    found = [one for one in guards if one is not None]
    if not found:
        return None
    count = _count(starts, rows.more)

    def loop(one: Any) -> Any:
        first = [row for var, row in found if var.same_as(one.loop_var)]
        return tirx.IfThenElse(first[0] < count, one, None) if first else one

    body = structural_map(func.body, (tirx.For, loop))
    return tirx.PrimFunc([starts, *func.params], body, func.ret_type, func.attrs)


def _first_row(leaf: Leaf, known: list[Leaf], cache: Any, axis: int) -> tuple[Any, Any] | None:
    """The variable of the loop that can be guarded, and the first row that is read in it."""
    loops, realize = leaf
    index = _added(realize.block, cache)
    if index is None:
        return None
    row = outside(index[axis], realize)
    analyzer = within(loops)
    found = None
    for at, one in enumerate(loops):
        if at and loops[at - 1].kind not in (tirx.ForKind.SERIAL, tirx.ForKind.PARALLEL):
            break
        first = at_begin(row, loops[at:])
        span = analyzer.const_int_bound(analyzer.simplify(row - first))
        alone = sum(any(each.same_as(one) for each in others) for others, _ in known) == 1
        depends = any(var.same_as(each.loop_var) for var in collect(first, tirx.Var)
                      for each in loops[:at])  # fmt: skip
        if span.min_value >= 0 and alone and depends:
            found = one.loop_var, first
            if span.max_value < _FEW:
                break
    return found


def _added(block: Any, cache: Any) -> Any:
    """The indices at which a block reads a cache, if it adds to a sum initialised elsewhere."""
    store = block.body
    if block.init is not None or not isinstance(store, tirx.BufferStore):
        return None
    loads = collect(store.value, tvm.ir.TensorLoad)
    read = [one for one in loads if one.source.same_as(cache)]
    sums = isinstance(store.value, tirx.Add) and any(
        one.source.same_as(store.buffer) for one in collect(store.value.a, tvm.ir.TensorLoad)
    )
    return list(read[0].indices) if sums and len(read) == 1 else None


def _count(starts: Any, more: int) -> Any:
    """How many rows count: the most of any sample."""
    most: Any = None
    for sample in range(int(starts.shape[0])):
        one = tirx.BufferLoad(starts, [tirx.const(sample, "int64")])
        most = one if most is None else tirx.Max(most, one)
    return most + tirx.const(more, "int64")
