"""Floats divided by a scale before they are rounded to its steps: a product with its reciprocal.

    round(norm(x) / scale)             -->   round(norm(x) * (1 / scale))
    round(e[i, j] * (1 / s[i]) / scale)  -->   round(e[i, j] * (1 / s[i] * (1 / scale)))

A vector's division keeps the processor as long as half of an exponential, or as three other
operations of a normalisation. The product may be one unit in the last place off: so may what is
divided, where processors make other bytes of a kernel. All else is divided as ONNX says.
"""

from __future__ import annotations

from typing import Any

from ..._tvm import op_name, structural_map, tirx, tvm
from .rounding import NEAREST
from .same_bytes import may_differ
from .vector_math import has_reciprocal


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.Reciprocals")
def reciprocals(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with products for quotients that are rounded, if it may differ anyway."""
    made = func.with_body(structural_map(func.body, (tvm.ir.Call, _rounded)))
    return made if may_differ(func) else func


def _rounded(call: Any) -> Any:
    if op_name(call) != NEAREST or not isinstance(call.args[0], tirx.Div):
        return call
    value, scale = call.args[0].a, call.args[0].b
    if str(call.ty.dtype) != "float32" or not has_reciprocal(scale):
        return call
    return tirx.nearbyint(_times(value, tirx.const(1 / scale.value, "float32")))


def _times(value: Any, factor: Any) -> Any:
    """The product of a value, of which the last factor may be a row's, and of a number."""
    if isinstance(value, tirx.Mul) and isinstance(value.b, tirx.Div):
        return value.a * (value.b * factor)
    return value * factor
