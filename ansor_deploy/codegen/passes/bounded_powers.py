"""Compute exponentials without range checks where the types of their arguments bound them.

    exp(float32(int32(q[i, j]) - int32(m[i])) * 0.02)   -->   2^n * polynomial, q and m are bytes

In other exponentials, three of ten operations handle overflow to infinity and underflow to zero.
"""

from __future__ import annotations

from typing import Any

from ..._tvm import op_name, structural_map, tirx, tvm
from .vector_math import EXP_ENDS, exp_within, shared


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.BoundedPowers")
def bounded_powers(func: Any, _mod: Any, _context: Any) -> Any:
    """The function, without range checks where the argument of an exponential is bounded."""
    return func.with_body(structural_map(func.body, (tvm.ir.Call, _within)))


def _within(call: Any) -> Any:
    if op_name(call) != "tirx.exp" or str(call.ty.dtype) != "float32":
        return call
    (x,) = call.args
    return shared(x, exp_within) if _most(x) <= EXP_ENDS else call


def _most(x: Any) -> float:
    """A bound of a float's absolute value, if it is an integer, perhaps times a constant.

    Infinite for any other expression.
    """
    factor = 1.0
    if isinstance(x, tirx.Mul) and isinstance(x.b, tirx.FloatImm):
        x, factor = x.a, abs(x.b.value)
    if not isinstance(x, tirx.Cast) or not str(x.value.ty.dtype).startswith(("int", "uint")):
        return float("inf")
    bound = tvm.sym.Analyzer().const_int_bound(x.value)
    return factor * max(abs(float(bound.min_value)), abs(float(bound.max_value)))
