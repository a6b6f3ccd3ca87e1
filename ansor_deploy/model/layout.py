"""Channels-last layout: convolutions in N..C, with every transpose sunk until it vanishes.

TVM's ConvertLayout stops at clip, knows no 3-D models and wraps what it does not know in
transposes. This pass walks a model once, in order, and keeps for each value the forms in which
it exists: as the ONNX graph has it (channels first), channels last, or both. An operator that
does not care is computed in the form at hand; a transpose is emitted only where an operator
needs the form that is not there, and at most once for a value.

    conv(x, w) ; clip ; conv   -->   transpose(x) ; conv_nhwc ; clip ; conv_nhwc ; transpose

Operators on constants alone (reshaped biases, transposed weights) are computed here in NumPy:
TVM's FoldConstant compiles and runs a function for each, seconds for a large model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tvm import relax, tvm
from .dataflow import kept, rewritten
from .layout_rules import RULES, Value, to_first, to_last


def channels_last(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with `main` rewritten; unchanged where `main` is not one dataflow block."""
    return rewritten(mod, Walk)


class Walk:
    """The values seen so far, each in the forms in which it exists."""

    def __init__(self, builder: relax.BlockBuilder) -> None:
        self.builder = builder
        self._values: dict[Any, Value] = {}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """From now on `var` means `value`."""
        self._values[var] = self.rewrite(value)

    def plain(self, expr: relax.Expr) -> relax.Expr:
        """As the model has it: channels first."""
        return self.first(expr)

    def emit(self, expr: relax.Expr) -> relax.Expr:
        """The expression as a variable of the new function."""
        return self.builder.emit(expr)

    def value(self, expr: relax.Expr) -> Value:
        """The forms of an operand of the old function."""
        if isinstance(expr, relax.Var):
            return self._values.setdefault(expr, Value(first=expr))
        return Value(first=expr)

    def constant(self, expr: relax.Expr) -> np.ndarray | None:
        """The operand's elements where they are known."""
        first = self.value(expr).first
        return first.value.numpy() if isinstance(first, tvm.ir.GenericConst) else None

    def has_last(self, expr: relax.Expr) -> bool:
        """Whether the operand exists channels last already."""
        return self.value(expr).last is not None

    def first(self, expr: relax.Expr) -> relax.Expr:
        """The operand channels first, transposing it if need be. Tuples by their fields."""
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self.first(field) for field in expr.fields])
        value = self.value(expr)
        if value.first is None:
            axes = to_first(len(value.last.ty.shape))
            value.first = self.emit(relax.op.permute_dims(value.last, axes))
        return value.first

    def last(self, expr: relax.Expr) -> relax.Expr:
        """The operand channels last, transposing it if need be."""
        value = self.value(expr)
        if value.last is None:
            axes = to_last(len(value.first.ty.shape))
            constant = self.constant(expr)
            if constant is not None:
                value.last = relax.const(np.ascontiguousarray(constant.transpose(axes)))
            else:
                value.last = self.emit(relax.op.permute_dims(value.first, axes))
        return value.last

    def rewrite(self, expr: relax.Expr) -> Value:
        """The value of a binding, by the operator's rule or as it stands."""
        name = expr.op.name if isinstance(expr, relax.Call) and hasattr(expr.op, "name") else ""
        if isinstance(expr, relax.Var):
            return self.value(expr)
        ruled = RULES[name](self, expr) if name in RULES else None
        return ruled or Value(first=self.emit(kept(expr, self.first)))
