"""CumSum as generated code: along an axis, each row is added to the sum of those before it.

    for o (parallel): for k in 1 .. n: for i (vectors): y[o, k, i] = y[o, k - 1, i] + x[o, k, i]

o are the elements before the axis, i those behind it, n its length. An exclusive sum adds the row
before and begins with zero; a reversed one goes from the end. Elements are added in the order of
the axis, so the sums equal those of ONNX Runtime to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..._lazy_tvm import tirx, tvm
from .converting import Call
from .operator import Operator

# Elements of the innermost loop's vectors: the float32 that the widest processors add at once.
_LANES = 16


def cumulated(call: Call) -> Any:
    """The sums along an axis."""
    shape, axis = call.shape(0), call.value(1)
    if axis is None:
        raise ValueError("the axis must be constant")
    at = int(np.reshape(axis, ())) % len(shape)
    if not prod(shape):
        return call.inputs[0]
    exclusive, reverse = (bool(call.attribute(name, 0)) for name in ("exclusive", "reverse"))
    scan = _Scan(shape, at, exclusive, reverse)
    return call.bb.emit_te(scan.compute, call.inputs[0], primfunc_name_hint="cumsum")


@dataclass(frozen=True)
class _Scan:
    """Sums along an axis of a tensor."""

    shape: tuple[int, ...]
    axis: int
    exclusive: bool
    reverse: bool

    def compute(self, data: Any) -> Any:
        """The sums in TE."""
        build = lambda ins, outs: self._statement(ins[0], outs[0])  # noqa: E731
        return tvm.te.extern([self.shape], [data], build, name="cumsum", dtype=[str(data.dtype)])

    def _statement(self, source: Any, result: Any) -> Any:
        T = tvm.script.ir_builder.tirx  # noqa: N806
        x, y = map(T.buffer_proxy, (source, result))  # indexed by the flat place of elements
        length, inner = self.shape[self.axis], prod(self.shape[self.axis + 1 :])
        step, first = (-inner, (length - 1) * inner) if self.reverse else (inner, 0)
        with tvm.script.ir_builder.IRBuilder() as builder:
            with T.parallel(0, prod(self.shape[: self.axis])) as outer, T.seq_scope():
                begin = outer * (length * inner) + first
                for i in _columns(T, inner):
                    at = begin + i
                    y[at] = tirx.const(0, str(source.dtype)) if self.exclusive else x[at]
                with T.serial(0, length - 1) as k, T.seq_scope():
                    for i in _columns(T, inner):
                        before, now = begin + k * step + i, begin + (k + 1) * step + i
                        y[now] = y[before] + x[before if self.exclusive else now]
            return builder.get()


def _columns(T: Any, count: int) -> Iterator[Any]:  # noqa: N803
    """Loops over columns: over whole vectors, then over the rest."""
    whole, rest = divmod(count, _LANES)
    if whole:
        with T.serial(0, whole) as block, T.vectorized(0, _LANES) as lane:
            yield block * _LANES + lane
    if rest:
        with T.vectorized(0, rest) as lane:
            yield whole * _LANES + lane


OPERATORS = (Operator("CumSum", since=11, convert=cumulated),)
