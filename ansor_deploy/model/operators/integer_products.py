"""Matrix products of bytes, summed up in int32: MatMulInteger.

Of two matrices that are known in a run only, as in attention, the right one is made signed, and
packed as weights are:

    sum of (a - az)(b - bz) = sum of a b - bz * (sum of a - K az) - az * (sum of b)

The two sums at the right are of rows and of columns, and none where a zero point is 0.
"""

from __future__ import annotations

from typing import Any

from ..._lazy_tvm import relax, tirx, tvm
from ...marks.dot import STEPS, current_has_dot
from .converting import Call
from .integers import INTEGERS, VECTOR, Window, as_whole, centred, is_number, known_sums, real
from .operator import Operator
from .signs import BYTES, int32, signed, unsigned

# Rows that are worth packing the right matrix for them.
FEWEST_ROWS = 8


def mat_mul_integer(call: Call) -> Any:
    """Compute (a - zero) @ (b - zero)."""
    weight = centred(call, 1, 3)
    known = weight is not None and weight.ndim == 2 and len(call.shape(0)) > 1
    if known and is_number(call.input(2)):
        return known_sums(call, call.inputs[0], call.input(2), weight, Window())
    return _of_bytes(call) if _are_bytes(call) and current_has_dot() else _any(call)


def _any(call: Call) -> Any:
    """A product of what is known at run time only, or by zero points of rows."""
    rows = [-1, 1] if not is_number(call.input(2)) and len(call.input(2).ty.shape) == 1 else None
    left, right = real(call, 0, 2, rows), real(call, 1, 3, None)
    return as_whole(call, call.shape(0)[-1], left, right, relax.op.matmul)


def _are_bytes(call: Call) -> bool:
    """Whether both are of bytes around one zero point each, as many of both, and large enough."""
    if not all(call.dtype(at) in BYTES and is_number(call.input(at + 2)) for at in (0, 1)):
        return False
    left, right = call.shape(0), call.shape(1)
    same = len(left) == len(right) > 1 and left[:-2] == right[:-2]
    return same and left[-2] >= FEWEST_ROWS and right[-1] >= VECTOR


def _of_bytes(call: Call) -> Any:
    """A product of two matrices of bytes, by fours."""
    left, left_zero = unsigned(call, call.inputs[0], call.input(2))
    right, right_zero = signed(call, call.inputs[1], call.input(3))
    depth = call.shape(0)[-1]
    total = call.emit(call.bb.call_te(_multiplied, left, right, primfunc_name_hint=call.operator))
    if not _is_zero(right_zero):
        rows = _less(call, _sum(call, left, -1), _times(call, int32(depth), left_zero))
        total = _less(call, total, _times(call, rows, right_zero))
    if not _is_zero(left_zero):
        total = _less(call, total, _times(call, _sum(call, right, -2), left_zero))
    return total


def _is_zero(zero: Any) -> bool:
    return isinstance(zero, int) and zero == 0


def _sum(call: Call, data: Any, axis: int) -> Any:
    wide = call.emit(relax.op.astype(data, "int32"))
    return call.emit(relax.op.sum(wide, axis, keepdims=True))


def _times(call: Call, left: Any, zero: Any) -> Any:
    return call.emit(relax.op.multiply(left, int32(zero) if isinstance(zero, int) else zero))


def _less(call: Call, left: Any, right: Any) -> Any:
    return call.emit(relax.op.subtract(left, right))


def _multiplied(left: Any, right: Any) -> Any:
    """Sums of products of unsigned bytes and of signed ones, filled up to whole fours."""
    *lead, rows, depth = left.shape
    missing = -int(depth) % STEPS
    if missing:
        left, right = _longer(left, -1, missing), _longer(right, -2, missing)
    k = tvm.te.reduce_axis((0, int(depth) + missing))

    def element(*at: Any) -> Any:
        *batch, row, column = at
        one, other = left(*batch, row, k), right(*batch, k, column)
        return tvm.te.sum(one.astype("int32") * other.astype("int32"), axis=[k])

    return tvm.te.compute((*lead, rows, right.shape[-1]), element, name="sums")


def _longer(data: Any, axis: int, more: int) -> Any:
    """A matrix with zeros behind its last rows or columns."""
    shape = list(data.shape)
    extent, shape[axis] = shape[axis], shape[axis] + more

    def element(*at: Any) -> Any:
        return tirx.if_then_else(at[axis] < extent, data(*at), tirx.const(0, data.dtype))

    return tvm.te.compute(shape, element, name="filled")


OPERATORS = (Operator("MatMulInteger", since=10, types=INTEGERS, convert=mat_mul_integer),)
