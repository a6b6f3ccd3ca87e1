"""Nest conditions that read memory, since generated code evaluates both sides of an `and`.

TVM merges two nested conditions into one. Then the second one reads memory also where the first one
is false, and was there to prevent that.
"""

from typing import Any

from ..._tvm import collect, conjuncts, op_name, structural_map, tirx, tvm


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.OneByOne")
def one_by_one(func: Any, _mod: Any, _context: Any) -> Any:
    """Evaluate a condition that reads memory only where the conditions before it hold."""
    return func.with_body(structural_map(func.body, (tvm.ir.Call, _nested)))


def _nested(call: Any) -> Any:
    if op_name(call) != "prim.if_then_else":
        return call
    first, value, otherwise = call.args
    parts = conjuncts(first)
    at = next((at for at, one in enumerate(parts) if at and _reads(one)), 0)
    if not at:
        return call
    inner = _nested(tirx.if_then_else(tirx.all(*parts[at:]), value, otherwise))
    return tirx.if_then_else(tirx.all(*parts[:at]), inner, otherwise)


def _reads(condition: Any) -> bool:
    return bool(collect(condition, tvm.ir.TensorLoad))
