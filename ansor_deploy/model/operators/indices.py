"""Indices that are computed at run time, checked against the extents of their data.

    for i: w = x[i] < 0 ? x[i] + extent : x[i]        negative ones count from the end
           y[i] = w if 0 <= w < extent else 0 ; bad |= not so
    assert not bad                                    the call of the library fails

Kernels that read or write at an index take it from y, so none of them leaves its tensors. The loop
replaces one that TVM's converters write for negative indices. Constant indices are checked when the
model is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

import numpy as np

from ..._lazy_tvm import relax, tirx, tvm
from ...errors import ModelError
from .converting import Call

# Attribute of a node in a branch of an If. Both branches are computed, so neither may fail.
IN_BRANCH = "in_branch"
# With at least this many indices, a parallel loop is faster despite its start.
_WORTH_THREADS = 1 << 15
PLACES = "places"  # the name of programs whose results are in range (`counted_places.py`)


def in_range(
    call: Call,
    indices: Any,
    extents: Sequence[int],
    *,
    negative: bool = True,
    least: int = 0,
    of: str = "an index",
) -> Any:
    """Indices that are not negative and are all below their extents.

    extents: one for all, or one for each place of the last axis. negative: whether negative ones
    count from the end. least: the least index allowed if not. of: the name of an index in the
    error. ModelError if a constant index is out of range; an IndexError of the library's call if
    another one is.
    """
    fails = not call.attribute(IN_BRANCH, 0)
    fault = _Range(call.operator, tuple(extents), negative, least, of, fails)
    if isinstance(indices, tvm.ir.GenericConst):
        return relax.const(fault.checked(indices.value.numpy()), str(indices.ty.dtype))
    shape = [int(extent) for extent in indices.ty.shape]
    if not prod(shape) or is_made_by(call, indices, PLACES):
        return indices
    flat = indices if shape else call.emit(relax.op.reshape(indices, (1,)))
    made = call.emit(call.bb.emit_te(fault.compute, flat, primfunc_name_hint="in_range"))
    return made if shape else call.emit(relax.op.reshape(made, ()))


def out_of_range(
    operator: str, extents: Sequence[int], least: int | None = None, of: str = "an index"
) -> str:
    """The message of an index out of range. least: the least; None where negative ones count."""
    lows = [-extent if least is None else least for extent in extents]
    ranges = [f"{low} .. {extent - 1}" for low, extent in zip(lows, extents, strict=True)]
    return f"{operator}: {of} is not in {', '.join(dict.fromkeys(ranges))}"


def is_made_by(call: Call, tensor: Any, name: str) -> bool:
    """Whether a tensor is the result of a program with such a name."""
    made = call.bb.lookup_binding(tensor) if isinstance(tensor, relax.Var) else None
    of = made.args[0] if isinstance(made, relax.Call) and made.args else None
    return isinstance(of, tvm.ir.GlobalVar) and of.name_hint.startswith(name)


class _Range:
    """The indices that an operator accepts."""

    def __init__(
        self,
        operator: str,
        extents: tuple[int, ...],
        negative: bool,
        least: int,
        of: str,
        fails: bool,
    ) -> None:
        self._extents, self._negative, self._least, self._fails = extents, negative, least, fails
        self._text = out_of_range(operator, extents, None if negative else least, of)

    def checked(self, indices: np.ndarray) -> np.ndarray:
        """Constant indices as `in_range` returns them."""
        # A single extent is used as a number, which leaves the rank of the indices as it is.
        extents = np.array(self._extents if len(self._extents) > 1 else self._extents[0], np.int64)
        wide = indices.astype(np.int64)
        wrapped = np.where(wide < 0, wide + extents, wide) if self._negative else wide
        if ((wrapped < self._least) | (wrapped >= extents)).any():
            raise ModelError(
                self._text,
                "Correct the constant, or the tensor that it indexes, and export the model again.",
            )
        return wrapped.astype(indices.dtype)

    def compute(self, indices: Any) -> Any:
        """The loop in TE."""
        shape = [int(extent) for extent in indices.shape]
        return tvm.te.extern(
            [shape], [indices], lambda ins, outs: self._statement(ins[0], outs[0]), name="in_range",
            dtype=[str(indices.dtype)],
        )  # fmt: skip

    def _statement(self, source: Any, target: Any) -> Any:
        T = tvm.script.ir_builder.tirx  # noqa: N806
        extents = [int(extent) for extent in source.shape]
        parallel = prod(extents) >= _WORTH_THREADS
        rows = extents[0] if parallel else 1  # so that no two threads write to one fault
        x, y = T.buffer_proxy(source), T.buffer_proxy(target)
        with tvm.script.ir_builder.IRBuilder() as builder:
            with T.seq_scope():
                faults = T.buffer_proxy(T.alloc_buffer((rows,), "int32"))
                with T.serial(0, rows) as row:
                    faults[row,] = 0
                with ExitStack() as loops:
                    at = self._places(extents, loops, T.parallel if parallel else T.serial)
                    for place, extent in zip(self._last(at), self._extents, strict=True):
                        self._one(x, y, place, extent, faults, at[0] if parallel else 0)
                with T.serial(0, rows) as row:
                    faults[0] = faults[0] | faults[row,]
                if self._fails:
                    with T.Assert(tirx.EQ(faults[0], 0), self._text, "IndexError"):
                        pass
            return builder.get()

    def _places(self, extents: list[int], loops: ExitStack, outermost: Any) -> list[Any]:
        """Loops over all axes; not over the last one if each of its places has its own extent."""
        T = tvm.script.ir_builder.tirx  # noqa: N806
        looped = extents[:-1] if len(self._extents) > 1 else extents
        kinds = [outermost, *[T.serial] * (len(looped) - 1)]
        return [loops.enter_context(kind(0, n)) for kind, n in zip(kinds, looped, strict=False)]

    def _last(self, at: list[Any]) -> list[tuple[Any, ...]]:
        if len(self._extents) == 1:
            return [tuple(at)]
        return [(*at, place) for place in range(len(self._extents))]

    def _one(self, x: Any, y: Any, at: Any, extent: int, faults: Any, row: Any) -> None:
        least, end = (tirx.const(value, x[at].ty.dtype) for value in (self._least, extent))
        y[at], outside = kept_in(x[at], end, least, negative=self._negative)
        faults[row,] = faults[row,] | tirx.Cast("int32", outside)


def kept_in(index: Any, end: Any, least: Any, *, negative: bool = True) -> tuple[Any, Any]:
    """An index in a range, the least one instead of any outside, and whether it was outside.

    end: the first index behind the range. negative: whether negative ones count from there.
    """
    zero = tirx.const(0, str(end.ty.dtype))
    wrapped = index + tirx.Select(index < zero, end, zero) if negative else index
    outside = tirx.Or(wrapped < least, wrapped >= end)
    return tirx.Select(outside, least, wrapped), outside
