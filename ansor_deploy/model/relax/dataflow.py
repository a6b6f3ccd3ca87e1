"""The common part of passes that walk a model once, in order, and write a new one."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._tvm import relax, shape_of, tvm
from .labels import form_of, label


def constant_of(values: np.ndarray) -> relax.Expr:
    """A constant of an array's own type: `relax.const` alone makes float32 of float64."""
    return relax.const(values, str(values.dtype))


def turned(tensor: relax.Expr, axes: list[int]) -> relax.Expr:
    """A tensor with its axes in this order: reshaped where its elements stay in theirs."""
    shape = shape_of(tensor.ty)
    wide = [axis for axis in axes if shape[axis] > 1]
    if wide == sorted(wide):
        return relax.op.reshape(tensor, [shape[axis] for axis in axes])
    return relax.op.permute_dims(tensor, axes)


class Walk(ABC):
    """A pass on its way through the bindings of `main`.

    computed: calls a function that is given in TE. label: that of the variable being bound
    (`labels.py`). inputs: the labels of the model's inputs.
    """

    def __init__(self, builder: relax.BlockBuilder) -> None:
        self._emit, self.computed = builder.emit, builder.call_te
        self.label = ""
        self.inputs: dict[Any, str] = {}

    def emit(self, expr: relax.Expr, same: relax.Expr | None = None) -> relax.Var:
        """A variable for an expression, with the label of the variable being bound.

        same: the value, if the expression is another form of one.
        """
        if same is None:
            return self._emit(expr, self.label)
        known = self.inputs.get(same) or label(getattr(same, "name", ""))
        return self._emit(expr, form_of(known))

    @abstractmethod
    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value from now on, in whatever form the pass gives it."""

    @abstractmethod
    def plain_tensor(self, expr: relax.Expr) -> relax.Expr:
        """A tensor of the old function as one of the new, in the form that the model has."""

    def plain(self, expr: relax.Expr) -> relax.Expr:
        """An operand in the form that the model has; for a tuple, each of its fields."""
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self.plain(field) for field in expr.fields])
        return self.plain_tensor(expr)

    def kept(self, expr: relax.Expr) -> relax.Expr:
        """The same expression, with the new function's operands."""
        if isinstance(expr, relax.Call):
            args = [self.plain(arg) for arg in expr.args]
            return relax.Call(expr.op, args, expr.attrs, expr.ty_args)
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self.plain(expr.tuple_value), expr.index)
        return self.plain(expr)


class Renaming(Walk):
    """A pass that keeps every value and gives it a variable of the new function."""

    def __init__(self, builder: relax.BlockBuilder) -> None:
        super().__init__(builder)
        self.new: dict[Any, Any] = {}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value."""
        self.new[var] = self.emit(self.kept(value))

    def plain_tensor(self, expr: relax.Expr) -> relax.Expr:
        """The new function's variable, or the constant."""
        return self.new.get(expr, expr) if isinstance(expr, relax.Var) else expr


def rewritten(mod: tvm.IRModule, walk: Callable[[relax.BlockBuilder], Walk]) -> tvm.IRModule:
    """The module with `main` rewritten; unchanged where `main` is not one dataflow block."""
    main = mod["main"]
    blocks = main.body.blocks
    if len(blocks) != 1 or not isinstance(blocks[0], relax.DataflowBlock):
        return mod
    builder = relax.BlockBuilder()
    walking = walk(builder)
    walking.inputs = {param: f"t{at}_" for at, param in enumerate(main.params)}
    with builder.function("main", list(main.params), attrs=dict(main.attrs or {})):
        with builder.dataflow():
            for binding in blocks[0].bindings:
                walking.label = label(binding.var.name)
                walking.bind(binding.var, binding.value)
            result = builder.emit_output(walking.plain(main.body.body))
        builder.emit_func_output(result)
    # Functions that the front end lowered itself stay: the new `main` still calls them.
    others = {gv: func for gv, func in mod.functions.items() if gv.name_hint != "main"}
    made = {gv: func for gv, func in builder.get().functions.items() if gv.name_hint != "main"}
    main = builder.get()["main"]
    return tvm.IRModule({**others, **made, mod.get_global_var("main"): main})
