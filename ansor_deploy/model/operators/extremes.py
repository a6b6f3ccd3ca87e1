"""ArgMax and ArgMin with results in range for any values, and Hardmax from them.

    best = max(best, x[k])                                      for k
    at = min(at, k if x[k] = best else n)                       for k

Two reductions with one result each are scheduled like any other. TVM's single reduction of pairs is
not; it begins with index -1 and the least finite number, so it finds no maximum in a row of -inf.
Of equal elements the first counts, or the last. NaN is ignored unless it comes first, as in ONNX
Runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from ..._lazy_tvm import relax, tirx, tvm
from .converting import Call
from .emitter import Emitter
from .operator import Operator

# float32 is exact for integers up to here: then places are float32, which vectors compare.
_EXACT = 1 << 24


def arg_extreme(call: Call) -> Any:
    """The index of the largest or smallest element along an axis."""
    shape = call.shape(0)
    data = call.inputs[0]
    if call.dtype(0) == "bfloat16":  # TVM cannot test it for NaN
        data = call.emit(relax.op.astype(data, "float32"))
    extreme = _Extreme(
        shape,
        axis=call.attribute("axis", 0) % len(shape),
        keep=call.attribute("keepdims", 1) == 1,  # like ONNX Runtime, where any other value is 0
        largest=call.operator == "ArgMax",
        last=bool(call.attribute("select_last_index", 0)),
    )
    return call.bb.emit_te(extreme.place, data, primfunc_name_hint=call.operator.lower())


@dataclass(frozen=True)
class _Extreme:
    """The largest or smallest element along an axis. last: the last of equal ones counts."""

    shape: tuple[int, ...]
    axis: int
    keep: bool
    largest: bool
    last: bool

    def place(self, data: Any) -> Any:
        """In TE, the index of the extreme."""
        extreme, end = (tvm.te.max if wins else tvm.te.min for wins in (self.largest, self.last))
        best = self._along(data, extreme, "best", lambda value, *_: value)
        extent = self.shape[self.axis]
        kind = "float32" if extent <= _EXACT else "int64"
        nowhere = tirx.const(-1 if self.last else extent, kind)

        def hit(value: Any, k: Any, at: tuple[Any, ...]) -> Any:
            return tirx.Select(tirx.EQ(value, best(*at)), tirx.Cast(kind, k), nowhere)

        found = self._along(data, end, "found", hit)
        # In a row of infinities no element may equal `best`, which begins with a finite number.
        first = tirx.const(extent - 1 if self.last else 0, kind)

        def held(*at: Any) -> Any:
            place = tirx.Select(tirx.EQ(found(*at), nowhere), first, found(*at))
            return tirx.Cast("int64", place)

        return tvm.te.compute(found.shape, held, name="place")

    def _along(self, data: Any, reducer: Any, name: str, term: Callable[..., Any]) -> Any:
        """A reduction of a term of each element, its index, and the place of the result."""
        axis, extent = self.axis, self.shape[self.axis]
        k = tvm.te.reduce_axis((0, extent), "k")
        made = [*self.shape[:axis], *([1] if self.keep else []), *self.shape[axis + 1 :]]

        def reduced(*at: Any) -> Any:
            outer = [*at[:axis], k, *at[axis + self.keep :]]
            return reducer(term(self._ranked(data(*outer), k.var), k.var, at), axis=k)

        return tvm.te.compute(made, reduced, name=name)

    def _ranked(self, value: Any, k: Any) -> Any:
        """An element; a NaN wins the reduction if it comes first, and loses it elsewhere."""
        kind = str(value.ty.dtype)
        if "float" not in kind:
            return value
        low, high = _lowest(kind), _highest(kind)
        first, others = (high, low) if self.largest else (low, high)
        return tirx.Select(tirx.isnan(value), tirx.Select(tirx.EQ(k, 0), first, others), value)


def _lowest(kind: str) -> Any:
    return tirx.const(-math.inf, kind) if "float" in kind else tirx.min_value(kind)


def _highest(kind: str) -> Any:
    return tirx.const(math.inf, kind) if "float" in kind else tirx.max_value(kind)


def hardmax(emit: Emitter) -> str:
    """One at the first maximum, zero elsewhere; before opset 13 over all axes from one on."""
    data = emit.input(0)
    kind, shape = emit.dtype(data), emit.shape(data)
    if emit.graph.opset >= 13:
        axis, rows = emit.attribute("axis", -1) % len(shape), data
        sizes = shape
    else:
        begin = emit.attribute("axis", 1) % len(shape)
        axis, sizes = 1, (math.prod(shape[:begin]), math.prod(shape[begin:]))
        rows = emit.reshape(data, *sizes)
    form = [-1 if at == axis else 1 for at in range(len(sizes))]
    places = emit.constant(np.arange(sizes[axis]).reshape(form), TensorProto.INT64)
    hit = emit("Equal", emit("ArgMax", rows, axis=axis, keepdims=1), places)
    return emit.reshape(emit.cast(hit, kind), *shape)


OPERATORS = (
    Operator("ArgMax", convert=arg_extreme),
    Operator("ArgMin", convert=arg_extreme),
    Operator("Hardmax", expand=hardmax),
)
