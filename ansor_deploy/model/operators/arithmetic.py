"""Operators on numbers that TVM's converters lack, or get wrong for some types or values."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from onnx import TensorProto

from ..._lazy_tvm import relax, tirx, tvm
from ..graph.graph import FLOATS
from .converting import Call
from .emitter import Emitter
from .operator import ANY, REAL, Limit, Operator, Use, dtype_name

_LARGEST_DET = 4


def quotient(emit: Emitter) -> str | None:
    """Write a quotient by the constant zero as a product: TVM refuses to divide by it."""
    value = emit.graph.value(emit.input(1))
    if value is None or value.size != 1 or value.any() or emit.graph.opset < 7:
        return None
    kind = emit.dtype(emit.input(0))  # asked last, since inferring types is slow
    factor = np.copysign(inf, value.astype(float)) if kind in FLOATS else value
    return emit("Mul", emit.input(0), emit.constant(factor, kind))


def product(emit: Emitter) -> str | None:
    """Multiply by a tensor of one zero: TVM makes 0 of a product with the number 0, also of NaN."""
    shapes, opset = emit.graph.shapes, emit.graph.opset
    for at in (0, 1) if opset >= 7 else ():
        value = emit.graph.value(emit.input(at)) if shapes.get(emit.input(at)) == () else None
        other = emit.input(1 - at)
        if value is None or value.any() or not shapes.get(other):
            continue
        if (kind := emit.dtype(other)) in FLOATS:
            return emit("Mul", other, emit.constant([value], kind))
    return None


def modulo(emit: Emitter) -> str | None:
    """Mod of floats with the divisor's sign: TVM's gives NaN for an infinite divisor."""
    left, right = emit.input(0), emit.input(1)
    kind = emit.dtype(left)
    if kind not in FLOATS or emit.attribute("fmod", 0):
        return None
    zero = emit.constant(0, kind)
    rest = emit("Mod", left, right, fmod=1)
    unlike = emit("Xor", emit("Less", rest, zero), emit("Less", right, zero))
    wrong = emit("And", unlike, emit("Not", emit("Equal", rest, zero)))
    return emit("Where", wrong, emit("Add", rest, right), rest)


def is_infinite(emit: Emitter) -> str:
    """Compare with one infinity, or with both."""
    kind = emit.dtype(emit.input(0))
    found = [
        emit("Equal", emit.input(0), emit.constant(value, kind))
        for name, value in (("detect_negative", -inf), ("detect_positive", inf))
        if emit.attribute(name, 1)
    ]
    if not found:
        return emit("And", emit("IsNaN", emit.input(0)), emit.constant(False, TensorProto.BOOL))
    return emit("Or", *found) if len(found) > 1 else found[0]


def equal(emit: Emitter) -> str | None:
    """Equality of booleans by logic: TVM compares them with constants as if they were floats."""
    if emit.graph.dtypes.get(emit.input(0)) != TensorProto.BOOL:
        return None
    return emit("Not", emit("Xor", emit.input(0), emit.input(1)))


def extreme(emit: Emitter) -> str | None:
    """Reduce booleans as bytes, since TVM has no least and greatest boolean."""
    data = emit.input(0)
    if emit.dtype(data) != TensorProto.BOOL:
        return None
    reduced = _reduced(emit, emit.node.op_type, emit.cast(data, TensorProto.UINT8))
    return emit.cast(reduced, TensorProto.BOOL)


def log_of_sum_of_exponentials(emit: Emitter) -> str | None:
    """Compute log(sum(exp(x - m))) + m with the maximum m; TVM's is NaN if that is infinite."""
    data, kind = emit.input(0), emit.dtype(emit.input(0))
    if kind not in FLOATS or emit.graph.opset < 11:  # older opsets cannot compare floats
        return None
    largest = _reduced(emit, "ReduceMax", data, keepdims=1)
    endless = emit("Equal", emit("Abs", largest), emit.constant(inf, kind))
    shift = emit("Where", endless, emit.constant(0, kind), largest)
    logarithm = _reduced(emit, "ReduceLogSum", emit("Exp", emit("Sub", data, shift)))
    return emit("Add", logarithm, _reduced(emit, "ReduceMax", shift))


def _reduced(emit: Emitter, op: str, data: str, **changed: Any) -> str:
    """A reduction over the axes of the node."""
    attributes = {entry.name: emit.attribute(entry.name) for entry in emit.node.attribute}
    return emit(op, data, *list(emit.node.input)[1:], **{**attributes, **changed})


def lp_normalization(emit: Emitter) -> str:
    """Divide by the norm along an axis; zeros stay zeros where it is zero."""
    data, kind = emit.input(0), emit.dtype(emit.input(0))
    norm = "ReduceL1" if emit.attribute("p", 2) == 1 else "ReduceL2"
    length = emit.reduce(norm, data, emit.attribute("axis", -1))
    zero = emit.constant(0, kind)
    return emit("Where", emit("Equal", length, zero), zero, emit("Div", data, length))


def determinant(emit: Emitter) -> str:
    """The sum of signed products (Leibniz's formula, by the first row's minors)."""
    data = emit.input(0)
    shape = emit.shape(data)
    rank, size = len(shape), shape[-1]
    if size > _LARGEST_DET:
        raise emit.refuse(f"only of matrices with at most {_LARGEST_DET} rows")
    rows = [emit.slice(data, rank - 2, row, row + 1) for row in range(size)]
    elements = [[emit.slice(r, rank - 1, at, at + 1) for at in range(size)] for r in rows]
    return emit.reshape(_minor(emit, elements, tuple(range(size))), *shape[:-2])


def _minor(emit: Emitter, rows: list[list[str]], columns: tuple[int, ...]) -> str:
    """The determinant of the square matrix of these rows and columns."""
    if len(rows) == 1:
        return rows[0][columns[0]]
    total = ""
    for at, column in enumerate(columns):
        rest = _minor(emit, rows[1:], columns[:at] + columns[at + 1 :])
        product = emit("Mul", rows[0][column], rest)
        total = emit("Sub" if at % 2 else "Add", total, product) if total else product
    return total


def cumulative_product(call: Call) -> Any:
    """Products along an axis up to each element, or of all before it if exclusive."""
    axis = int(np.asarray(call.value(1)).reshape(()))
    data = call.inputs[0]
    backwards = bool(call.attribute("reverse", 0))
    data = call.emit(relax.op.flip(data, axis)) if backwards else data
    exclusive = bool(call.attribute("exclusive", 0))
    made = call.emit(relax.op.cumprod(data, axis, call.dtype(0), exclusive=exclusive))
    return relax.op.flip(made, axis) if backwards else made


def bit_shift(call: Call) -> Any:
    """Shift by any number of bits; one out of range, or negative, shifts all bits out."""
    data, shift = (call.bb.normalize(each) for each in call.inputs)
    kind = call.dtype(0)
    bits = np.dtype(kind).itemsize * 8
    signed = not kind.startswith("u")
    last = relax.const(bits - 1, kind)
    far = relax.op.greater(shift, last)
    if signed:
        far = relax.op.logical_or(far, relax.op.less(shift, relax.const(0, kind)))
    near = call.emit(relax.op.where(call.emit(far), last, shift))
    if call.attribute("direction") == "RIGHT":
        moved = call.emit(relax.op.right_shift(data, near))
        return moved if signed else relax.op.where(far, relax.const(0, kind), moved)
    return relax.op.where(far, relax.const(0, kind), call.emit(relax.op.left_shift(data, near)))


def _other_width(use: Use) -> bool:
    given = dtype_name(use.graph.dtypes.get(use.input(0), 0))
    to = np.dtype(dtype_name(use.attribute("to")))
    return given not in (None, "bfloat16") and np.dtype(given).itemsize != to.itemsize


_SAME_WIDTH = Limit("both types are of one width", _other_width)


def bit_cast(call: Call) -> Any:
    """The same bits as another type."""
    kind = dtype_name(call.attribute("to"))
    if "bool" in (kind, call.dtype(0)):
        return relax.op.astype(call.inputs[0], kind)

    def reinterpreted(data: Any) -> Any:
        one = lambda *at: tirx.reinterpret(kind, data(*at))  # noqa: E731
        return tvm.te.compute(data.shape, one, name="bit_cast")

    return call.bb.emit_te(reinterpreted, call.inputs[0])


OPERATORS = (
    Operator("Div", expand=quotient),
    Operator("Equal", expand=equal),
    Operator("Mul", expand=product),
    Operator("Mod", since=10, expand=modulo),
    Operator("IsInf", since=10, expand=is_infinite),
    Operator("ReduceMax", expand=extreme),
    Operator("ReduceMin", expand=extreme),
    Operator("ReduceLogSumExp", expand=log_of_sum_of_exponentials),
    Operator("LpNormalization", types=REAL, expand=lp_normalization),
    Operator("Det", since=11, types=REAL, expand=determinant),
    Operator("CumProd", since=26, types=ANY - {"bool"}, constant=(1,), convert=cumulative_product),
    Operator("BitShift", since=11, convert=bit_shift),
    Operator("BitCast", since=26, limits=(_SAME_WIDTH,), convert=bit_cast),
)
