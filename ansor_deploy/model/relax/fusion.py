"""Cuts before fusion, where a fused kernel would compute one value many times.

TVM fuses an operator into its consumer by their patterns alone. A gate of one value a channel,

    s[c] = sigmoid(sum_k m[k] * w[k, c]) ; y[h, w, c] = x[h, w, c] * s[c]

would so become the epilogue of the convolution that makes it, h x w times as large as its result:
a tile would write all of it out. And a chain of functions would be computed anew at every position.
A value that its consumer repeats is cut off from it, where a kernel of its own takes less time than
the repetition. The sums of rows are not, if the rows themselves are what repeats them (softmax,
normalisations): there each is computed once.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ..._tvm import WalkResult, collect, op_name, relax, shape_of, structural_walk, tirx, tvm
from ...space.code_size import is_condition, operations
from .dataflow import Renaming, rewritten

# Operations that take as long as the call of a kernel.
CALL = 1 << 15

# TVM's patterns (`op_pattern`) of what is fused with its consumers: up to injective, or this one.
_INJECTIVE, _WITH_EPILOGUE, _OPAQUE = 2, 4, 8
# An identity that no pass looks through.
BARRIER = "relax.builtin.stop_lift_params"


@dataclass(frozen=True)
class _Value:
    """What a kernel that repeats a value computes again.

    cost: operations an element; infinite for a reduction. rows: shape of what it holds a sum of
    each row of, where nothing but functions of the sums came after; else empty.
    """

    cost: float
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Function:
    """What a function is to those that it may be fused with.

    pattern: TVM's. operations: an element of the result takes. shapes: of its parameters, the
    result's last. reads: of each parameter, the most iterations of a block that reads it at each.
    """

    pattern: int
    operations: int
    shapes: tuple[tuple[int, ...], ...]
    reads: tuple[int, ...]

    @classmethod
    def of(cls, func: tirx.PrimFunc) -> "_Function":
        """What a legalised operator's function is."""
        pattern = int((func.attrs or {}).get("op_pattern", _OPAQUE))
        operations_ = sum(operations(one.value) for one in collect(func.body, tirx.BufferStore))
        return cls(pattern, operations_, tuple(map(shape_of, func.params)), _reads(func))


def with_cuts(mod: tvm.IRModule) -> tvm.IRModule:
    """The legalised module, with a barrier on each edge that nothing should be fused over."""
    return rewritten(mod, lambda builder: _Cutting(builder, mod))


def without_cuts(mod: tvm.IRModule) -> tvm.IRModule:
    """The fused module without barriers."""
    return rewritten(mod, _Joining)


class _Joining(Renaming):
    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, or what lies behind a barrier."""
        if op_name(value) == BARRIER:
            self.new[var] = self.plain(value.args[0])
        else:
            super().bind(var, value)


class _Cutting(Renaming):
    def __init__(self, builder: relax.BlockBuilder, mod: tvm.IRModule) -> None:
        super().__init__(builder)
        self._mod = mod
        self._values: dict[Any, _Value] = {}
        self._functions: dict[Any, _Function] = {}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, of operands behind barriers where it repeats them."""
        if isinstance(value, relax.TupleGetItem):
            self._note(var, self._values.get(value.tuple_value))
        if op_name(value) != "relax.call_tir":
            super().bind(var, value)
            return
        func, operands = self._function(value.args[0]), value.args[1].fields
        known = [self._values.get(operand) for operand in operands]
        cut = [own is not None and _is_cut(own, func, at) for at, own in enumerate(known)]
        self._note(var, _made(func, [k for k, c in zip(known, cut, strict=True) if k and not c]))
        args = [self._argument(o, c) for o, c in zip(operands, cut, strict=True)]
        call = [value.args[0], relax.Tuple(args), *value.args[2:]]
        self.new[var] = self.emit(relax.Call(value.op, call, value.attrs, value.ty_args))

    def _function(self, name: Any) -> _Function:
        if name not in self._functions:
            self._functions[name] = _Function.of(self._mod[name])
        return self._functions[name]

    def _note(self, var: relax.Var, value: _Value | None) -> None:
        if value is not None:
            self._values[var] = value

    def _argument(self, operand: relax.Expr, is_cut: bool) -> relax.Expr:
        plain = self.plain(operand)
        return self.emit(relax.op.builtin.stop_lift_params(plain)) if is_cut else plain


def _made(func: _Function, fused: list[_Value]) -> _Value | None:
    """What a function makes of operands that it may be fused with; None if it ends a kernel."""
    if func.pattern == _WITH_EPILOGUE:
        return _Value(math.inf, _rows(func))
    if func.pattern > _INJECTIVE:
        return None
    rows = {value.rows for value in fused if value.rows}
    kept = len(rows) == 1 and _is_sum(func.shapes[-1], *rows)
    return _Value(func.operations + sum(value.cost for value in fused), *rows if kept else ())


def _is_cut(value: _Value, func: _Function, at: int) -> bool:
    """Whether a function should read this operand of it from memory."""
    if value.cost == 0 or (value.rows and value.rows == func.shapes[-1]):
        return False
    again = func.reads[at] - math.prod(func.shapes[at])
    return again > 0 and value.cost * again > CALL


def _rows(func: _Function) -> tuple[int, ...]:
    """The shape of the only operand, if its rows are summed up or the like; else empty."""
    operand, *others = func.shapes
    return operand if len(others) == 1 and _is_sum(others[0], operand) else ()


def _is_sum(sums: tuple[int, ...], rows: tuple[int, ...]) -> bool:
    """Whether a tensor has the shape of others, but for a 1 for each of the last axes."""
    kept = len(sums)
    while kept and sums[kept - 1] == 1:
        kept -= 1
    return len(sums) == len(rows) and sums[:kept] == rows[:kept] and sums != rows


def _reads(func: tirx.PrimFunc) -> tuple[int, ...]:
    """Of each parameter, the most iterations of a block that reads it at each."""
    most: dict[Any, int] = defaultdict(int)
    for block in collect(func.body, tvm.s_tir.SBlock):
        iterations = math.prod(int(axis.dom.extent) for axis in block.iter_vars)
        for buffer in _always_read(block):
            most[buffer] = max(most[buffer], iterations)
    return tuple(most.get(parameter, 0) for parameter in func.params)


def _always_read(block: Any) -> list[Any]:
    """The buffers that a block reads at every iteration: not as one part of a concatenation."""
    found: list[Any] = []

    def skip_condition(call: Any) -> Any:
        return WalkResult.SKIP if is_condition(call) else None

    note = (tvm.ir.TensorLoad, lambda load: found.append(load.source))
    structural_walk(block.body, [(tvm.ir.Call, skip_condition), note], order="pre")
    return found
