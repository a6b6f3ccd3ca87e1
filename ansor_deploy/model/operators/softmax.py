"""Softmax; if its input stands for bytes, computed from the bytes themselves.

    softmax((q - zero) * scale)[j]  =  exp((q[j] - max q) * scale) / sum of the same

So scores go from the product that makes them to their softmax as bytes, a quarter of the memory,
and the maximum is found among bytes. A score has one rounding error instead of three.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..._lazy_tvm import op_name, relax, tvm
from .converting import Call
from .operator import Operator
from .signs import BYTES

_ONE_AXIS = 13  # from this opset on it is along one axis, by default the last


def softmax(call: Call) -> Any:
    """Weights that add up to one along an axis."""
    rank = len(call.shape(0))
    axis = call.attribute("axis", -1 if call.opset >= _ONE_AXIS else 1)
    found = _steps(call) if axis % rank == rank - 1 and _is_for_processors() else None
    if found is None:
        return call.by_tvm()
    data, scale = found
    return call.bb.call_te(partial(_weights, scale=scale), data, primfunc_name_hint="softmax")


def _is_for_processors() -> bool:
    target = tvm.target.Target.current(allow_none=True)
    return target is not None and target.kind.name == "llvm"


def _steps(call: Call) -> tuple[Any, float] | None:
    """The bytes that the input stands for, and its scale; None if it stands for no bytes."""
    scaled, scale = _split(call, call.inputs[0], "relax.multiply")
    wide = _made(call, scaled)
    if not scale > 0 or op_name(wide) != "relax.astype":
        return None
    whole, _ = _split(call, wide.args[0], "relax.subtract", "relax.add")
    narrow = _made(call, whole)
    if op_name(narrow) != "relax.astype" or str(narrow.args[0].ty.dtype) not in BYTES:
        return None
    return narrow.args[0], scale


def _split(call: Call, value: Any, *operators: str) -> tuple[Any, float]:
    """The left operand and the right number of one of the operators; else the value and 0."""
    made = _made(call, value)
    if op_name(made) not in operators or not isinstance(made.args[1], tvm.ir.GenericConst):
        return value, 0
    number = made.args[1].value.numpy()
    return (made.args[0], number.item()) if number.size == 1 else (value, 0)


def _made(call: Call, value: Any) -> Any:
    """The expression that a variable is bound to; any other value itself."""
    return call.bb.lookup_binding(value) if isinstance(value, relax.Var) else value


def _weights(data: Any, scale: float) -> Any:
    te, (*rows, columns) = tvm.te, data.shape

    def power(*at: Any) -> Any:
        below = data(*at).astype("int32") - top(*at[:-1]).astype("int32")
        return te.exp(below.astype("float32") * tvm.tirx.const(scale, "float32"))

    along, over = (te.reduce_axis((0, columns), name) for name in ("along", "over"))
    top = te.compute(rows, lambda *at: te.max(data(*at, along), axis=along), name="top")
    powers = te.compute(data.shape, power, name="powers")
    total = te.compute(rows, lambda *at: te.sum(powers(*at, over), axis=over), name="total")
    return te.compute(data.shape, lambda *at: powers(*at) / total(*at[:-1]), name="weights")


OPERATORS = (Operator("Softmax", convert=softmax),)
