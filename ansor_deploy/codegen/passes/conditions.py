"""Conditions that are hidden from TVM where it parts a loop, and those that guard others.

TVM parts a loop at every condition in it, of each a range where it is known. Of conditions that
depend on loops around it, these ranges have no order that holds for all of their steps: TVM takes
one that it finds by addresses, and skips steps or makes them twice (`loop_partition.cc`). A tile
that is cut off does not need them: its own condition knows nothing of other loops.

And it makes one condition of two, one within the other: code computes both sides of an `and`, so
that what the first one keeps from being read is read for the second.
"""

from collections.abc import Iterator
from typing import Any

from ..._tvm import collect, op_name, structural_map, tirx, tvm
from ...space.marks import PARTITION

_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)
_HIDDEN = {f"ansor_hidden_{kind.__name__}": kind for kind in _COMPARISONS}


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.HideConditions")
def hide_conditions(func: Any, _mod: Any, _context: Any) -> Any:
    """Hide what depends on a marked loop and on one around it that has no mark."""
    loops = {loop.loop_var for loop in collect(func.body, tirx.For)}
    marks = [one for one in collect(func.body, tirx.AttrStmt) if one.attr_key == PARTITION]
    outside = {one.node: loops - _loops_in(one) for one in marks}
    around = {var: others - outside.keys() for var, others in outside.items()}

    def hidden(comparison: Any) -> Any:
        used = set(collect(comparison, tirx.Var))
        if not any(var in used and used & others for var, others in around.items()):
            return comparison
        name = f"ansor_hidden_{type(comparison).__name__}"
        return tirx.call_pure_extern("bool", name, comparison.a, comparison.b)

    def chosen(call: Any) -> Any:
        if op_name(call) != "prim.if_then_else":
            return call
        condition, *rest = call.args
        return tirx.if_then_else(structural_map(condition, (_COMPARISONS, hidden)), *rest)

    return func.with_body(structural_map(func.body, (tvm.ir.Call, chosen)))


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.ShowConditions")
def show_conditions(func: Any, _mod: Any, _context: Any) -> Any:
    """Show again what `hide_conditions` has hidden. Loops that were not parted lose their mark."""
    body = structural_map(func.body, (tirx.AttrStmt, _unmarked))
    return func.with_body(structural_map(body, (tvm.ir.Call, _shown)))


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.OneByOne")
def one_by_one(func: Any, _mod: Any, _context: Any) -> Any:
    """Let a condition that reads memory be computed only where those before it hold."""
    return func.with_body(structural_map(func.body, (tvm.ir.Call, _nested)))


def _nested(call: Any) -> Any:
    if op_name(call) != "prim.if_then_else":
        return call
    first, value, otherwise = call.args
    parts = list(_parts(first))
    at = next((at for at, one in enumerate(parts) if at and _reads(one)), 0)
    if not at:
        return call
    inner = _nested(tirx.if_then_else(tirx.all(*parts[at:]), value, otherwise))
    return tirx.if_then_else(tirx.all(*parts[:at]), inner, otherwise)


def _parts(condition: Any) -> Iterator[Any]:
    if isinstance(condition, tirx.And):
        yield from (*_parts(condition.a), *_parts(condition.b))
    else:
        yield condition


def _reads(condition: Any) -> bool:
    return bool(collect(condition, tvm.ir.TensorLoad))


def _unmarked(mark: Any) -> Any:
    return mark.body if mark.attr_key == PARTITION else mark


def _shown(call: Any) -> Any:
    name = call.args[0] if call.args else None
    if not isinstance(name, tvm.ir.StringImm) or name.value not in _HIDDEN:
        return call
    return _HIDDEN[name.value](*call.args[1:])


def _loops_in(mark: Any) -> set[Any]:
    return {loop.loop_var for loop in collect(mark.body, tirx.For)}
