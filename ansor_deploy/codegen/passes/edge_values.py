"""Edge values as ONNX defines them: rows of -inf, NaN in maxima, integer division by zero.

TVM's max(a, b) is `a > b ? a : b`: a NaN on the right is kept, one on the left is lost.

    max(x, 0)   -->  max(0, x)                          one instruction, as before
    max(x, y)   -->  isnan(x) ? NaN : max(x, y)         AArch64 has an instruction for this

CUDA's max loses a NaN on either side, so both sides are checked there.

TVM's max reductions begin with the least finite number. A row of -inf would become that number, and
so would a pooling window that is padded with it: they begin with -inf here. Where an integer is
divided by zero, or the least integer by -1, the processor would end the program: here x / 0 and
x mod 0 are 0, as in NumPy.

TVM also simplifies `not x < y` to `y <= x`, and `x == x` to true. Both are wrong for NaN:

    not x < y   -->  x < y ? false : true               one comparison in LLVM's code
    x == x      -->  x <= x
"""

import math
from collections.abc import Callable
from typing import Any

from ..._tvm import collect, lane, op_name, structural_equal, structural_map, tirx, tvm
from ...marks.partial_lanes import first_value
from .vector_math import Expr, shared

_EXTREMES = (tirx.Max, tirx.Min)
_MAXIMUM = {tirx.Max: "llvm.maximum", tirx.Min: "llvm.minimum"}
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
_QUOTIENTS, _RESTS = (tirx.Div, tirx.FloorDiv), (tirx.Mod, tirx.FloorMod)
# TVM's annotation of the block of a max pooling.
_POOLING = "meta_schedule.pool_max"


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.FromInfinity")
def from_infinity(func: Any, _mod: Any, _context: Any) -> Any:
    """Let maxima begin with -inf and minima with inf, and pad pooling windows with -inf."""
    stores = collect(func.body, tirx.BufferStore)
    updates = [store for store in stores if is_update(store, *_EXTREMES)]
    reduced = {store.buffer: type(store.value) for store in updates}
    if not any("float" in str(buffer.dtype) for buffer in reduced):
        return func
    pooled = _read_for(reduced, stores) if _pools(func) else set()

    def changed(store: Any) -> Any:
        value, kind = store.value, reduced.get(store.buffer)
        if kind is not None and _is_least(value, kind):
            value = first_value(kind, str(store.buffer.dtype))
        elif store.buffer in pooled:
            value = structural_map(value, (tvm.ir.Call, _padded))
        same = value is store.value
        return store if same else tirx.BufferStore(store.buffer, value, store.indices)

    return func.with_body(structural_map(func.body, (tirx.BufferStore, changed)))


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.Negations")
def negations(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with comparisons of floats that TVM does not simplify as if none were NaN."""
    body = structural_map(func.body, [(tirx.EQ, _ordered), (tirx.NE, _unordered)])
    return func.with_body(structural_map(body, (tirx.Not, _chosen)))


def _ordered(equal: Any) -> Any:
    same = is_float(equal.a) and structural_equal(equal.a, equal.b)
    return tirx.LE(equal.a, equal.b) if same else equal


def _unordered(differs: Any) -> Any:
    same = is_float(differs.a) and structural_equal(differs.a, differs.b)
    return tirx.Not(tirx.LE(differs.a, differs.b)) if same else differs


def _chosen(negation: Any) -> Any:
    if not any(is_float(one.a) for one in collect(negation.a, *_COMPARISONS)):
        return negation
    return tirx.Select(negation.a, tirx.const(False, "bool"), tirx.const(True, "bool"))


def is_update(store: Any, *kinds: Any) -> bool:
    """Whether a store is an update such as s = s + x, by one of these kinds of expressions."""
    value = store.value
    loaded = isinstance(value, kinds) and isinstance(value.a, tvm.ir.TensorLoad)
    return loaded and bool(value.a.source.same_as(store.buffer))


def _is_least(value: Expr, kind: Any) -> bool:
    """Whether a value is TVM's first value of a maximum (or minimum) of floats."""
    if not isinstance(value, tirx.FloatImm):
        return False
    least = tirx.min_value if kind is tirx.Max else tirx.max_value
    return bool(value.value == least(str(value.ty.dtype)).value)


def _pools(func: Any) -> bool:
    blocks = collect(func.body, tvm.s_tir.SBlock)
    return any((one.annotations or {}).get("schedule_rule") == _POOLING for one in blocks)


def _read_for(buffers: Any, stores: list[Any]) -> set[Any]:
    """These buffers, and all buffers that their values are computed from."""
    found: set[Any] = set()
    ahead = list(buffers)
    while ahead:
        found.add(buffer := ahead.pop())
        into = [store.value for store in stores if store.buffer.same_as(buffer)]
        loads = {load.source for value in into for load in collect(value, tvm.ir.TensorLoad)}
        ahead += loads - found
    return found


def _padded(call: Any) -> Any:
    """`inside ? x : least` with -inf instead of `least`, where `inside` reads no memory."""
    if op_name(call) != "prim.if_then_else" or not _is_least(call.args[2], tirx.Max):
        return call
    if collect(call.args[0], tvm.ir.TensorLoad):
        return call
    infinity = first_value(tirx.Max, str(call.ty.dtype))
    return tirx.if_then_else(call.args[0], call.args[1], infinity)


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.EdgeValues")
def edge_values(func: Any, _mod: Any, _context: Any) -> Any:
    """A lowered function with maxima and minima that keep NaN, and divisions that never trap."""
    target = (func.attrs or {}).get("target")
    changes = [(kind, _extreme(target)) for kind in _EXTREMES]
    changes += [(kind, _never_trapping) for kind in (*_QUOTIENTS, *_RESTS)]
    return func.with_body(structural_map(func.body, changes))


def _extreme(target: Any) -> Callable[[Any], Any]:
    """The rewriting of maxima and minima for a target."""
    if target is not None and target.kind.name == "cuda":
        return _keeping_either_nan
    return _by_instruction if is_arm(target) else _keeping_nan


def is_arm(target: Any) -> bool:
    """Whether a TVM target is there and is an AArch64 processor."""
    return target is not None and str(target.attrs.get("mtriple", "")).startswith("aarch64")


def _by_instruction(node: Any) -> Any:
    if not is_float(node):
        return node
    return tirx.call_llvm_pure_intrin(str(node.ty.dtype), _MAXIMUM[type(node)], node.a, node.b)


def _keeping_nan(node: Any) -> Any:
    if not is_float(node) or _is_number(node.a):
        return node
    if _is_number(node.b):
        return type(node)(node.b, node.a)
    extreme = type(node)
    # A NaN constant instead of `a`: otherwise LLVM would make a chain of both comparisons.
    nan = tirx.const(math.nan, node.ty.dtype)
    return shared(node.a, lambda a: tirx.Select(tirx.isnan(a), nan, extreme(a, node.b)))


def _keeping_either_nan(node: Any) -> Any:
    if not is_float(node):
        return node
    if _is_number(node.a):
        node = type(node)(node.b, node.a)
    extreme, nan = type(node), tirx.const(math.nan, node.ty.dtype)

    def kept(a: Expr, b: Expr) -> Expr:
        either = tirx.isnan(a) if _is_number(b) else tirx.Or(tirx.isnan(a), tirx.isnan(b))
        return tirx.Select(either, nan, extreme(a, b))

    if _is_number(node.b):
        return shared(node.a, lambda a: kept(a, node.b))
    return shared(node.a, lambda a: shared(node.b, lambda b: kept(a, b)))


def is_float(node: Any) -> bool:
    """Whether an expression's type is a float."""
    return "float" in str(node.ty.dtype)


def _is_number(value: Expr) -> bool:
    """Whether a value is a constant, or a vector of one constant, that is not NaN."""
    one = lane(value)
    return isinstance(one, tirx.FloatImm) and not math.isnan(one.value)


def _never_trapping(node: Any) -> Any:
    """An integer division that divides by 1 where it would trap, and gives 0 for x / 0."""
    dtype = node.ty.dtype
    if "int" not in str(dtype) or isinstance(lane(node.b), tirx.IntImm):
        return node

    def divided(a: Expr, b: Expr) -> Expr:
        zero, one = tirx.const(0, dtype), tirx.const(1, dtype)
        by_zero = tirx.EQ(b, zero)
        traps = by_zero
        if not str(dtype).startswith("uint"):
            least = tirx.min_value(str(dtype.with_lanes(1)))
            overflows = tirx.And(tirx.EQ(b, tirx.const(-1, dtype)), tirx.EQ(a, _wide(least, dtype)))
            traps = tirx.Or(by_zero, overflows)
        result = type(node)(a, tirx.Select(traps, one, b))
        return tirx.Select(by_zero, zero, result) if isinstance(node, _QUOTIENTS) else result

    return shared(node.a, lambda a: shared(node.b, lambda b: divided(a, b)))


def _wide(value: Expr, dtype: Any) -> Expr:
    return value if dtype.lanes == 1 else tirx.Broadcast(value, dtype.lanes)
