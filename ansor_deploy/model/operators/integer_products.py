"""MatMulInteger: matrix products of bytes with sums in int32.

If both matrices are known only in a run, as in attention, the right one is made signed and packed
like weights; by columns if it is a transpose of a matrix that has these as rows:

    sum of (a - az)(b - bz) = sum of a b - bz * (sum of a - K az) - az * (sum of b)

The two sums on the right are sums of rows and of columns. Each is left out if its zero point is 0;
the last also if the processor multiplies 16 bits, since then a - az is multiplied.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..._lazy_tvm import op_name, relax, tirx, tvm
from ...marks.dot import STEPS, current_has_dot, current_widens
from .converting import Call
from .integers import (
    INTEGERS,
    VECTOR,
    Window,
    as_multiplied,
    as_whole,
    centred,
    is_number,
    known_sums,
    real,
)
from .operator import Operator
from .signs import BYTES, int32, signed

# With at least this many rows, packing the right matrix pays.
FEWEST_ROWS = 8


def mat_mul_integer(call: Call) -> Any:
    """Compute (a - zero) @ (b - zero)."""
    weight = centred(call, 1, 3)
    known = weight is not None and weight.ndim == 2 and len(call.shape(0)) > 1
    if known and is_number(call.input(2)):
        return known_sums(call, call.inputs[0], call.input(2), weight, Window())
    fast = current_has_dot() or current_widens()
    return _of_bytes(call) if fast and _are_bytes(call) else _any(call)


def _any(call: Call) -> Any:
    """A product of matrices that are known only in a run, or with zero points for rows."""
    rows = [-1, 1] if not is_number(call.input(2)) and len(call.input(2).ty.shape) == 1 else None
    left, right = real(call, 0, 2, rows), real(call, 1, 3, None)
    return as_whole(call, call.shape(0)[-1], left, right, relax.op.matmul)


def _are_bytes(call: Call) -> bool:
    """Whether both are bytes with one zero point each, equal batches, and large enough."""
    if not all(call.dtype(at) in BYTES and is_number(call.input(at + 2)) for at in (0, 1)):
        return False
    left, right = call.shape(0), call.shape(1)
    same = len(left) == len(right) > 1 and left[:-2] == right[:-2]
    return same and left[-2] >= FEWEST_ROWS and right[-1] >= VECTOR


def _of_bytes(call: Call) -> Any:
    """A product of two matrices of bytes, several steps at once."""
    widened = current_widens()
    left, left_zero = as_multiplied(call, call.inputs[0], call.input(2))
    given, by_columns = _right(call)
    right, right_zero = signed(call, given, call.input(3))
    depth, taken = call.shape(0)[-1], left_zero if widened else None
    made = partial(_multiplied, by_columns=by_columns)
    total = call.emit(call.bb.call_te(made, left, taken, right, primfunc_name_hint=call.operator))
    if not _is_zero(right_zero):
        rows = _less(call, _sum(call, left, -1), _times(call, int32(depth), left_zero))
        total = _less(call, total, _times(call, rows, right_zero))
    if not (widened or _is_zero(left_zero)):
        sums = _of_columns(call, right) if by_columns else _sum(call, right, -2)
        total = _less(call, total, _times(call, sums, left_zero))
    return total


def _right(call: Call) -> tuple[Any, bool]:
    """The right matrix, and whether by columns: then it is the one before its transpose.

    There, the four steps of a column that are packed together are neighbours.
    """
    given = call.inputs[1]
    made = call.bb.lookup_binding(given) if isinstance(given, relax.Var) else given
    if op_name(made) != "relax.permute_dims":
        return given, False
    *batch, row, column = map(int, made.attrs.axes or reversed(range(len(given.ty.shape))))
    if row != len(batch) + 1:
        return given, False
    return call.emit(relax.op.permute_dims(made.args[0], [*batch, column, row])), True


def _of_columns(call: Call, right: Any) -> Any:
    """The sums of the columns, as a row, for a matrix by columns."""
    sums = _sum(call, right, -1)
    *batch, columns, one = sums.ty.shape
    return call.emit(relax.op.reshape(sums, [*batch, one, columns]))


def _is_zero(zero: Any) -> bool:
    return isinstance(zero, int) and zero == 0


def _sum(call: Call, data: Any, axis: int) -> Any:
    wide = call.emit(relax.op.astype(data, "int32"))
    return call.emit(relax.op.sum(wide, axis, keepdims=True))


def _times(call: Call, left: Any, zero: Any) -> Any:
    return call.emit(relax.op.multiply(left, int32(zero) if isinstance(zero, int) else zero))


def _less(call: Call, left: Any, right: Any) -> Any:
    return call.emit(relax.op.subtract(left, right))


def _multiplied(left: Any, zero: Any, right: Any, *, by_columns: bool) -> Any:
    """Dot products of bytes with signed bytes, padded to whole groups of four steps.

    zero: subtracted from the left ones, which are then 16 bits; None to multiply them as they are.
    """
    *lead, rows, depth = left.shape
    left = left if zero is None else _widened(left, zero)
    missing, steps = -int(depth) % STEPS, -1 if by_columns else -2
    if missing:
        left, right = _longer(left, -1, missing), _longer(right, steps, missing)
    k = tvm.te.reduce_axis((0, int(depth) + missing))

    def element(*at: Any) -> Any:
        *batch, row, column = at
        place = (column, k) if by_columns else (k, column)
        one, other = left(*batch, row, k), right(*batch, *place)
        return tvm.te.sum(one.astype("int32") * other.astype("int32"), axis=[k])

    columns = right.shape[-2 if by_columns else -1]
    return tvm.te.compute((*lead, rows, columns), element, name="sums")


def _widened(data: Any, zero: Any) -> Any:
    less = tirx.const(zero, "int16") if isinstance(zero, int) else zero().astype("int16")
    return tvm.te.compute(data.shape, lambda *at: data(*at).astype("int16") - less, name="widened")


def _longer(data: Any, axis: int, more: int) -> Any:
    """A matrix with zeros behind its last rows or columns."""
    shape = list(data.shape)
    extent, shape[axis] = shape[axis], shape[axis] + more

    def element(*at: Any) -> Any:
        return tirx.if_then_else(at[axis] < extent, data(*at), tirx.const(0, data.dtype))

    return tvm.te.compute(shape, element, name="filled")


OPERATORS = (Operator("MatMulInteger", since=10, types=INTEGERS, convert=mat_mul_integer),)
