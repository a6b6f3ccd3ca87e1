"""Half precision: float16 values are computed in float32 and rounded where they leave.

    x, w: float16                          x, w: float16
    y = relu(conv(x, w))         -->       y = float16(relu(conv(float32(x), float32(w))))

Sums in float16 lose terms that are small beside the sum, and no CPU before AVX-512 FP16 and ARMv8.2
can add float16: LLVM would convert every operand of every operation. A whole chain in float32 is
converted only at its ends, computes on whole vectors, and is what ONNX Runtime does on CPUs.
"""

from typing import Any

import numpy as np

from ..._tvm import op_name, relax, tvm
from .dataflow import Walk, constant_of, rewritten

_HALF = ("float16", "bfloat16")
# Operators that only look elements up: their table is not converted, so it stays small.
_LOOK_UPS = ("relax.take", "relax.gather_elements", "relax.gather_nd")


def in_single(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with `main` rewritten; unchanged where `main` is not one dataflow block."""
    return rewritten(mod, _Walk)


class _Walk(Walk):
    """The values seen so far: in the model's type, in float32, or both."""

    def __init__(self, builder: relax.BlockBuilder) -> None:
        super().__init__(builder)
        self._plain: dict[Any, Any] = {}
        self._wide: dict[Any, Any] = {}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, computed in float32 if it has a 16-bit type."""
        wide = self._widened(value)
        made = self.emit(self.kept(value) if wide is None else wide)
        forms = self._plain if _dtype(made) == _dtype(var) else self._wide
        forms[var] = made

    def plain_tensor(self, expr: relax.Expr) -> relax.Expr:
        """An operand in the model's type; one that exists in float32 is rounded once."""
        if expr in self._wide and expr not in self._plain:
            self._plain[expr] = self.emit(relax.op.astype(self._wide[expr], _dtype(expr)), expr)
        return self._plain.get(expr, expr) if isinstance(expr, relax.Var) else expr

    def _widened(self, value: relax.Expr) -> relax.Expr | None:
        """The value of operands in float32; None if none has 16 bits, or they have to stay so."""
        if isinstance(value, relax.TupleGetItem) and value.tuple_value in self._wide:
            return relax.TupleGetItem(self._wide[value.tuple_value], value.index)
        if op_name(value) == "relax.nn.layer_norm" and _dtype(value) == "float64":
            return self._normalized(value)
        if not isinstance(value, relax.Call) or self._stays(value):
            return None
        args = [self._operand(arg) for arg in value.args]
        return relax.Call(value.op, args, value.attrs, value.ty_args)

    def _stays(self, call: relax.Call) -> bool:
        """Whether a call takes its operands in the model's types."""
        name = op_name(call)
        if name.startswith("relax.call_") or not name:  # the callee determines the types
            return True
        if name in _LOOK_UPS:
            return call.args[0] not in self._wide
        return name == "relax.astype" and "float" not in str(call.attrs.dtype)

    def _operand(self, expr: relax.Expr) -> relax.Expr:
        """An operand in float32 if it has a 16-bit type; else as it is."""
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._operand(field) for field in expr.fields])
        if _dtype(expr) not in _HALF:
            return self.plain(expr)
        if isinstance(expr, tvm.ir.GenericConst):
            return constant_of(expr.value.numpy().astype(np.float32))
        if expr not in self._wide:
            self._wide[expr] = self.emit(relax.op.astype(self.plain(expr), "float32"), expr)
        return self._wide[expr]

    def _normalized(self, call: relax.Call) -> relax.Expr:
        """A layer normalisation by its definition, for float64, which TVM's does not support."""
        data, gamma, beta = map(self.plain, call.args)
        axes, emit, op = [int(axis) for axis in call.attrs.axes], self.emit, relax.op
        centred = emit(op.subtract(data, emit(op.mean(data, axes, keepdims=True))))
        variance = emit(op.mean(emit(op.multiply(centred, centred)), axes, keepdims=True))
        epsilon = constant_of(np.asarray(call.attrs.epsilon, _dtype(call)))
        scaled = emit(op.divide(centred, emit(op.sqrt(emit(op.add(variance, epsilon))))))
        return op.add(emit(op.multiply(scaled, gamma)), beta)


def _dtype(expr: relax.Expr) -> str:
    """The type of a tensor, or of a tuple's first field; "" for anything else."""
    type_ = expr.ty
    while isinstance(type_, relax.TupleType) and type_.fields:
        type_ = type_.fields[0]
    return str(type_.dtype) if isinstance(type_, relax.TensorType) else ""
