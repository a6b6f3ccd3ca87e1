"""Bytes as unsigned or as signed ones, 128 apart, and constants that go with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._lazy_tvm import relax, tirx, tvm
from .converting import Call

BYTES = ("uint8", "int8")
# The distance between both zero points, and the bit to flip to convert one kind to the other.
_TURN = 128


def unsigned(call: Call, data: Any, zero: Any) -> tuple[Any, Any]:
    """Bytes as unsigned ones, and their zero point, as `number` gives it."""
    known = number(call, zero)
    if str(data.ty.dtype) != "int8":
        return data, known
    turned = _turned(call, call.emit(relax.op.astype(data, "uint8")))
    return turned, _more(call, known, _TURN)


def signed(call: Call, data: Any, zero: Any) -> tuple[Any, Any]:
    """Bytes as signed ones, and their zero point, as `number` gives it."""
    known = number(call, zero)
    if str(data.ty.dtype) == "int8":
        return data, known
    turned = call.emit(call.bb.call_te(_reinterpreted, _turned(call, data)))
    return turned, _more(call, known, -_TURN)


def number(call: Call, zero: Any) -> Any:
    """A zero point as a number, 0 if there is none, or as an int32 scalar known only in a run.

    Zero points of channels are an int32 constant.
    """
    if zero is None:
        return 0
    if isinstance(zero, tvm.ir.GenericConst):
        known = zero.value.numpy()
        return int(known.reshape(())) if known.size == 1 else int32(known)
    return call.emit(relax.op.astype(call.emit(relax.op.reshape(zero, ())), "int32"))


def _turned(call: Call, data: Any) -> Any:
    return call.emit(relax.op.bitwise_xor(data, constant(_TURN, "uint8")))


def _reinterpreted(data: Any) -> Any:
    return tvm.te.compute(
        data.shape, lambda *at: tirx.reinterpret("int8", data(*at)), name="signed"
    )


def _more(call: Call, known: Any, by: int) -> Any:
    """A zero point, known now or only in a run, plus a number."""
    if isinstance(known, int):
        return known + by
    if isinstance(known, tvm.ir.GenericConst):
        return int32(known.value.numpy() + by)
    return call.emit(relax.op.add(known, relax.const(by, "int32")))  # the rank stays 0


def int32(value: Any) -> Any:
    """A constant of int32."""
    return constant(np.asarray(value).astype(np.int32))


def constant(value: Any, dtype: str = "") -> Any:
    """A constant of a type, or else of the value's own type."""
    return relax.const(np.asarray(value, dtype or None, order="C"))  # a number stays a scalar
