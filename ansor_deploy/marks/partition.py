"""Loops whose last iterations an extent cuts short: lowering makes separate code for these.

    for t in range(4) (marked): for i in range(8): if 8 t + i < 29: x[8 t + i]
    -->
    for t in range(3): for i in range(8): x[8 t + i]
    for i in range(5): x[24 + i]

TVM's pass does that: it partitions a loop at every condition in it, by the range in which each
condition is known. Ranges of conditions that also depend on outer loops have no order that holds
for all steps of those loops. TVM orders them by memory addresses, and so skips steps or repeats
them (`loop_partition.cc`). Cutting off a tile does not need such conditions, since a tile's own
condition depends on no other loop. They are therefore hidden from TVM during the pass.

So are conditions that leave out steps of a loop by what a run counts. TVM would make one copy of
the loop for each order in which their bounds may come.
"""

from typing import Any

from .._lazy_tvm import collect, op_name, structural_map, tirx, tvm
from ..system.checks import flag
from . import Mark, Place

# TVM's own annotation.
PARTITION = "pragma_loop_partition_hint"
_COMPARISONS = ("LT", "LE", "GT", "GE", "EQ", "NE")
_HIDDEN = "ansor_hidden_"


def partitioned(sch: Any, loop: Any) -> None:
    """Let lowering make separate code for a loop's last iterations, which an extent cuts short."""
    if int(sch.get(loop).extent) > 1:
        sch.annotate(loop, PARTITION, True)


def partition_bounded(sch: Any, block: Any) -> None:
    """Let lowering cut off a block's serial loops where the block's condition ends them."""
    loops = sch.get_loops(block)
    variables = collect(sch.get(loops[-1]).body.predicate, tirx.Var)
    for loop in loops:
        node = sch.get(loop)
        if node.kind == tirx.ForKind.SERIAL and any(node.loop_var.same_as(v) for v in variables):
            partitioned(sch, loop)


def parted(func: Any) -> Any:
    """The function with its marked loops in parts; loops that TVM leaves whole lose their mark.

    For the variable of a part of one step TVM puts a zero of 32 bits, which only fits one of 32:
    variables that are compared with what a run counts have 64.
    """
    named = func.with_body(structural_map(func.body, (tirx.AttrStmt, _on_its_loop)))
    wide = any(str(loop.loop_var.ty.dtype) == "int64" for loop in collect(named.body, tirx.For))
    config = {"partition_const_loop": True, "no_unroll_loop_with_extent_one": wide}
    with tvm.transform.PassContext(config={"s_tir.LoopPartition": config}):
        cut = tvm.s_tir.transform.LoopPartition()(tvm.IRModule({"main": hidden(named)}))
    return shown(cut["main"])


def _on_its_loop(mark: Any) -> Any:
    """A mark that names its loop's present variable, which narrowing has replaced."""
    if mark.attr_key != PARTITION or not isinstance(mark.body, tirx.For):
        return mark
    return tirx.AttrStmt(mark.body.loop_var, mark.attr_key, mark.value, mark.body, mark.span)


def hidden(func: Any) -> Any:
    """The function without comparisons that depend on a marked loop and on an unmarked outer loop.

    These are hidden in calls, and so are conditions of statements and of choices that read from
    memory: a loop over lanes would become parts of lanes that nobody counts before a run.
    """
    loops = {loop.loop_var for loop in collect(func.body, tirx.For)}
    marked = [one for one in collect(func.body, tirx.AttrStmt) if one.attr_key == PARTITION]
    outside = {one.node: loops - _loops_in(one) for one in marked}
    around = {var: others - outside.keys() for var, others in outside.items()}
    kinds = tuple(getattr(tirx, name) for name in _COMPARISONS)

    def called(comparison: Any) -> Any:
        used = set(collect(comparison, tirx.Var))
        whole = not any(var in used and used & others for var, others in around.items())
        return comparison if whole else undivided(comparison)

    def chosen(call: Any) -> Any:
        if op_name(call) != "prim.if_then_else":
            return call
        condition, *rest = call.args
        return tirx.if_then_else(structural_map(condition, (kinds, called)), *rest)

    def unread(condition: Any) -> Any:
        reads = collect(condition, tvm.ir.TensorLoad)
        return structural_map(condition, (kinds, undivided)) if reads else condition

    def guarded(guard: Any) -> Any:
        return tirx.IfThenElse(unread(guard.condition), guard.then_case, guard.else_case)

    def selected(choice: Any) -> Any:
        return tirx.Select(unread(choice.condition), choice.true_value, choice.false_value)

    body = structural_map(func.body, (tirx.IfThenElse, guarded))
    body = structural_map(body, (tirx.Select, selected))
    return func.with_body(structural_map(body, (tvm.ir.Call, chosen)))


def undivided(comparison: Any) -> Any:
    """A comparison as a call that TVM does not recognise, so that it partitions no loop there."""
    name = f"{_HIDDEN}{type(comparison).__name__}"
    return tirx.call_pure_extern("bool", name, comparison.a, comparison.b)


def shown(func: Any) -> Any:
    """The function with its hidden comparisons restored. Loops left whole lose their mark."""
    body = structural_map(func.body, (tirx.AttrStmt, _unmarked))
    return func.with_body(structural_map(body, (tvm.ir.Call, _compared)))


def _unmarked(mark: Any) -> Any:
    return mark.body if mark.attr_key == PARTITION else mark


def _compared(call: Any) -> Any:
    name = call.args[0] if call.args else None
    if not isinstance(name, tvm.ir.StringImm) or not name.value.startswith(_HIDDEN):
        return call
    return getattr(tirx, name.value.removeprefix(_HIDDEN))(*call.args[1:])


def _loops_in(mark: Any) -> set[Any]:
    return {loop.loop_var for loop in collect(mark.body, tirx.For)}


MARK = Mark({PARTITION: flag}, Place.ENDS, parted, verbs=("partitioned", "partition_bounded"))
