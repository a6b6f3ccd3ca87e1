"""ArgMax and ArgMin with results in range whatever the values are, and what is made of them.

    (at, best) = (k, x[k]) if x[k] > best else (at, best)       for k

TVM's begins with index -1 and the least finite number: a row of -inf would have no maximum. Of
equal ones the first counts, or the last. NaN is passed over unless it comes first, as in ONNX
Runtime.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto

from ..._lazy_tvm import relax, tirx, tvm
from .converting import Call
from .emitter import Emitter
from .operator import Operator


def arg_extreme(call: Call) -> Any:
    """The index of the largest or smallest along an axis."""
    shape = call.shape(0)
    axis = call.attribute("axis", 0) % len(shape)
    keep = call.attribute("keepdims", 1) == 1  # as ONNX Runtime, whatever else it is
    data = call.inputs[0]
    if call.dtype(0) == "bfloat16":  # which TVM does not ask for NaN
        data = call.emit(relax.op.astype(data, "float32"))
    reducer = _reducer(call)

    def compute(element: Any) -> Any:
        k = tvm.te.reduce_axis((0, shape[axis]), "k")
        kept = [(1,) if at == axis else (n,) for at, n in enumerate(shape)]
        made = sum((one for at, one in enumerate(kept) if keep or at != axis), ())

        def found(*at: Any) -> Any:
            outer = [*at[:axis], k, *at[axis + 1 if keep else axis :]]
            place = tirx.Cast("int64", k.var) if k.var.ty.dtype != "int64" else k.var
            return reducer((place, _ranked(call, element(*outer), k)), axis=k)

        index, _ = tvm.te.compute(made, found, name="extreme")
        return tvm.te.compute(made, lambda *at: index(*at), name="place")  # noqa: PLW0108 - of its rank

    return call.bb.emit_te(compute, data, primfunc_name_hint=call.operator.lower())


def _reducer(call: Call) -> Any:
    """The reduction of pairs of an index and its element."""
    last = bool(call.attribute("select_last_index", 0))
    largest = call.operator == "ArgMax"

    def combine(left: Any, right: Any) -> tuple[Any, Any]:
        (at, one), (other_at, other) = left, right
        beats = one > other if largest else one < other
        stays = tirx.Or(
            beats, tirx.And(tirx.EQ(one, other), at > other_at if last else at < other_at)
        )
        return tirx.Select(stays, at, other_at), tirx.Select(beats, one, other)

    def identity(index: str, kind: str) -> tuple[Any, Any]:
        nowhere = tirx.const(-1, index) if last else tirx.max_value(index)
        return nowhere, _lowest(kind) if largest else _highest(kind)

    return tvm.te.comm_reducer(combine, identity, name=call.operator.lower())


def _ranked(call: Call, value: Any, k: Any) -> Any:
    """An element, for NaN what leaves it the first place or no other."""
    kind = str(value.ty.dtype)
    if "float" not in kind:
        return value
    low, high = _lowest(kind), _highest(kind)
    first, others = (high, low) if call.operator == "ArgMax" else (low, high)
    return tirx.Select(tirx.isnan(value), tirx.Select(tirx.EQ(k.var, 0), first, others), value)


def _lowest(kind: str) -> Any:
    return tirx.const(-math.inf, kind) if "float" in kind else tirx.min_value(kind)


def _highest(kind: str) -> Any:
    return tirx.const(math.inf, kind) if "float" in kind else tirx.max_value(kind)


def hardmax(emit: Emitter) -> str:
    """One at the first of the largest, zero elsewhere; before opset 13 of all axes from one on."""
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
