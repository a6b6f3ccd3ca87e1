"""Multiply floats by the reciprocal of a scale, instead of dividing, before they are rounded.

    round(norm(x) / scale)             -->   round(norm(x) * (1 / scale))
    round(e[i, j] * (1 / s[i]) / scale)  -->   round(e[i, j] * (1 / s[i] * (1 / scale)))

Dividing a vector takes as long as half of an exponential, or as three other operations of a
normalisation. The product may differ by one unit in the last place. So this is done only in kernels
whose bytes may differ between processors anyway. All others divide as ONNX defines it.
"""

from __future__ import annotations

from typing import Any

from ..._tvm import op_name, structural_map, tirx, tvm
from .rounding import NEAREST
from .same_bytes import may_differ
from .vector_math import has_reciprocal


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.Reciprocals")
def reciprocals(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with products instead of rounded quotients, if its bytes may differ anyway."""
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
    """The product of a value and a constant.

    Where the value's last factor is a quotient, which a row may share, that one is multiplied.
    """
    if isinstance(value, tirx.Mul) and isinstance(value.b, tirx.Div):
        return value.a * (value.b * factor)
    return value * factor
