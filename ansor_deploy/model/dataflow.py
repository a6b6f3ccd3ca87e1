"""Passes that walk a model once, in order, and write it anew: what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .._tvm import relax, tvm

Operand = Callable[[Any], Any]


class Walk(Protocol):
    """What a pass does on its way."""

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """From now on `var` is that value, in whatever form the pass gives it."""

    def plain(self, expr: relax.Expr) -> relax.Expr:
        """An expression of the old function as one of the new, in the form that the model has."""


def rewritten(mod: tvm.IRModule, walk: Callable[[relax.BlockBuilder], Walk]) -> tvm.IRModule:
    """The module with `main` rewritten; unchanged where `main` is not one dataflow block."""
    main = mod["main"]
    blocks = main.body.blocks
    if len(blocks) != 1 or not isinstance(blocks[0], relax.DataflowBlock):
        return mod
    builder = relax.BlockBuilder()
    walking = walk(builder)
    with builder.function("main", list(main.params), attrs=dict(main.attrs or {})):
        with builder.dataflow():
            for binding in blocks[0].bindings:
                walking.bind(binding.var, binding.value)
            result = builder.emit_output(walking.plain(main.body.body))
        builder.emit_func_output(result)
    # What the front end has lowered by itself is called from `main` already: it stays.
    others = {gv: func for gv, func in mod.functions.items() if gv.name_hint != "main"}
    return tvm.IRModule({**others, mod.get_global_var("main"): builder.get()["main"]})


def kept(expr: relax.Expr, operand: Operand) -> relax.Expr:
    """The expression as it stands, of operands as the new function has them."""
    if isinstance(expr, relax.Call):
        args = [operand(arg) for arg in expr.args]
        return relax.Call(expr.op, args, expr.attrs, expr.ty_args)
    if isinstance(expr, relax.TupleGetItem):
        return relax.TupleGetItem(operand(expr.tuple_value), expr.index)
    return operand(expr)
