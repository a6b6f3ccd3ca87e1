"""NonZero with a second output, the count, as generated code.

    at = 0
    for i: place[at] = i ; at = at + (x[i] != 0)      the next one overwrites the place of a zero
    for e in at .. n: place[e] = 0
    count = at

The places have room for all elements. Those behind the last found are zero, so that they are valid
indices of the tensor.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ..._lazy_tvm import relax, tirx, tvm
from .converting import Call
from .operator import Operator


def nonzero(call: Call) -> Any:
    """The places of the nonzero elements and, if the node asks for it, their number."""
    if call.results == 1:
        return call.by_tvm()
    shape = call.shape(0)
    flat = call.emit(relax.op.reshape(call.inputs[0], (prod(shape),)))
    made = call.emit(call.bb.emit_te(_found, flat, primfunc_name_hint="nonzero"))
    places, count = (call.emit(relax.TupleGetItem(made, at)) for at in (0, 1))
    return relax.Tuple([_coordinates(call, places, shape), relax.op.reshape(count, ())])


def _coordinates(call: Call, places: Any, shape: tuple[int, ...]) -> Any:
    """A row of coordinates for each axis. places: in the flat tensor."""
    rows = []
    for axis, extent in enumerate(shape):
        step = relax.const(prod(shape[axis + 1 :]), "int64")
        along = call.emit(relax.op.floor_divide(places, step)) if len(shape) > 1 else places
        rest = axis > 0
        row = call.emit(relax.op.floor_mod(along, relax.const(extent, "int64"))) if rest else along
        rows.append(call.emit(relax.op.expand_dims(row, 0)))
    return rows[0] if len(rows) == 1 else call.emit(relax.op.concat(rows, 0))


def _found(data: Any) -> Any:
    """In TE, for a flat tensor: [n] places, [1] their number."""
    shapes = [(int(data.shape[0]),), (1,)]
    build = lambda ins, outs: _statement(ins[0], *outs)  # noqa: E731
    return tvm.te.extern(shapes, [data], build, name="nonzero", dtype=["int64", "int64"])


def _statement(source: Any, places: Any, count: Any) -> Any:
    T = tvm.script.ir_builder.tirx  # noqa: N806
    n = int(source.shape[0])
    x, y, found = map(T.buffer_proxy, (source, places, count))
    with tvm.script.ir_builder.IRBuilder() as builder:
        with T.seq_scope():
            at = T.buffer_proxy(T.alloc_buffer((1,), "int64", scope="local"))
            at[0] = tirx.const(0, "int64")
            with T.serial(0, n) as i:
                y[at[0]] = tirx.Cast("int64", i)
                at[0] = at[0] + tirx.Cast("int64", _is_one(x[i], str(source.dtype)))
            found[0] = at[0]
            with T.serial(0, n - at[0]) as rest:
                y[at[0] + rest] = tirx.const(0, "int64")
        return builder.get()


def _is_one(value: Any, kind: str) -> Any:
    return value if kind == "bool" else tirx.NE(value, tirx.const(0, kind))


OPERATORS = (Operator("NonZero", since=9, convert=nonzero),)
