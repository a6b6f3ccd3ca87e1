"""Barriers before fusion, on edges where a fused kernel would compute one value many times.

TVM fuses an operator into its consumer by their patterns alone. A gate with one value a channel,

    s[c] = sigmoid(sum_k m[k] * w[k, c]) ; y[h, w, c] = x[h, w, c] * s[c]

would so become the epilogue of the convolution that makes s, h x w times as large as its result:
each tile would write all of y. And a chain of functions would be computed again at every position.
A value is cut off from a consumer that repeats it where a kernel of its own takes less time than
the repetition. Sums of rows are not cut off if their repetition is along those rows (softmax,
normalisations): there each sum is computed once.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ..._tvm import (
    WalkResult,
    bindings,
    collect,
    op_name,
    relax,
    shape_of,
    structural_walk,
    tirx,
    tvm,
)
from ...space.code_size import is_condition, operations
from .dataflow import Renaming, rewritten
from .patterns import INJECTIVE, OPAQUE, WITH_EPILOGUE

# The call of a kernel takes as long as this many operations.
CALL = 1 << 15

# An integer division by another number than a power of two takes as long, or longer: processors
# divide no vectors of integers.
_DIVISION = 64
_DIVIDING = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
# A repeated value of more operations is cut off in any case: the compiler takes seconds for such a
# kernel, and half a minute where one has several of them.
_HEAVY = 512

# The compiler's time and memory grow with the square of the tensors that a kernel reads, and with
# the cube of its stages. Where there would be more, operands that are made of more than a few are
# kernels of their own.
_MOST_OPERANDS = 128
_MOST_STAGES = 128
_FEW = 8

# An identity that no pass looks through.
BARRIER = "relax.builtin.stop_lift_params"


@dataclass(frozen=True)
class _Value:
    """A value that a kernel fused with its maker computes again.

    cost: operations for each element; infinite for a reduction. operands: the tensors that its
    maker reads, with what is fused into that. stages: the values that are computed on the way, with
    this one. rows: if it is a sum of each row of a tensor, or an elementwise function of such sums,
    the shape of that tensor; else empty.
    """

    cost: float
    operands: frozenset[Any]
    stages: frozenset[Any]
    rows: tuple[int, ...] = ()

    def read_by(self, operand: Any) -> frozenset[Any]:
        """The tensors that a kernel reads for this value, an operand: itself after a reduction."""
        return frozenset((operand,)) if math.isinf(self.cost) else self.operands


@dataclass(frozen=True)
class _Operand:
    """An operand of a kernel. value: what it computes again for it; None if it reads it.

    reads: the tensors that the kernel reads for it. stages: the values that it computes for it.
    """

    var: Any
    value: _Value | None
    reads: frozenset[Any]
    stages: frozenset[Any]

    @classmethod
    def stored(cls, var: Any) -> "_Operand":
        """An operand that the kernel reads from memory."""
        return cls(var, None, frozenset((var,)), frozenset())


@dataclass(frozen=True)
class _Function:
    """A function, as far as its fusion with others depends on it.

    pattern: TVM's. operations: for each element of the result. shapes: of its parameters, the
    result last. reads: for each parameter, the most iterations among the blocks that always read
    it.
    """

    pattern: int
    operations: int
    shapes: tuple[tuple[int, ...], ...]
    reads: tuple[int, ...]

    @classmethod
    def of(cls, func: tirx.PrimFunc) -> "_Function":
        """The facts of a legalised operator's function."""
        pattern = int((func.attrs or {}).get("op_pattern", OPAQUE))
        operations_ = sum(_operations(one.value) for one in collect(func.body, tirx.BufferStore))
        return cls(pattern, operations_, tuple(map(shape_of, func.params)), _reads(func))


def with_cuts(mod: tvm.IRModule) -> tvm.IRModule:
    """The legalised module, with a barrier on each edge that nothing should be fused over."""
    return rewritten(mod, lambda builder: _Cutting(builder, mod))


def without_cuts(mod: tvm.IRModule) -> tvm.IRModule:
    """The fused module without barriers."""
    return rewritten(mod, _Joining)


class _Joining(Renaming):
    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, or the value before a barrier."""
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
        calls = [b.value for b in bindings(mod["main"]) if op_name(b.value) == "relax.call_tir"]
        sums = [call for call in calls if self._function(call.args[0]).pattern > INJECTIVE]
        self._summed = {operand for call in sums for operand in call.args[1].fields}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, with barriers before the operands that it would repeat."""
        if isinstance(value, relax.TupleGetItem):
            self._note(var, self._values.get(value.tuple_value))
        if op_name(value) != "relax.call_tir":
            super().bind(var, value)
            return
        func = self._function(value.args[0])
        operands = [self._operand(one) for one in value.args[1].fields]
        cut = _cut(func, operands)
        pairs = list(zip(operands, cut, strict=True))
        left = [_Operand.stored(one.var) if is_cut else one for one, is_cut in pairs]
        self._note(var, _made(var, func, left))
        args = [self._argument(one.var, is_cut) for one, is_cut in pairs]
        call = [value.args[0], relax.Tuple(args), *value.args[2:]]
        self.new[var] = self.emit(relax.Call(value.op, call, value.attrs, value.ty_args))

    def _operand(self, var: Any) -> _Operand:
        if (value := self._values.get(var)) is None:
            return _Operand.stored(var)
        return _Operand(var, value, value.read_by(var), self._computed(value, var))

    def _computed(self, value: _Value, operand: Any) -> frozenset[Any]:
        """The values that a kernel computes for one of its operands.

        What follows from a reduction is a kernel's result where another reduction reads it.
        """
        is_result = math.isinf(value.cost) and operand in self._summed
        return frozenset() if is_result else value.stages

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


def _cut(func: _Function, operands: list[_Operand]) -> list[bool]:
    """For each operand of a function, whether its kernel reads it from memory."""
    reads = _large([one.reads for one in operands], _MOST_OPERANDS)
    stages = _large([one.stages for one in operands], _MOST_STAGES)
    return [
        one.value is not None and (reads[at] or stages[at] or _is_cut(one.value, func, at))
        for at, one in enumerate(operands)
    ]


def _large(parts: list[frozenset[Any]], most: int) -> list[bool]:
    """For each part of a kernel, whether it is too large since all parts together are more."""
    many = len(frozenset().union(*parts)) > most
    return [many and len(one) > _FEW for one in parts]


def _made(var: Any, func: _Function, operands: list[_Operand]) -> _Value | None:
    """The value of a variable that a function makes; None if it ends a kernel."""
    reads = frozenset().union(*(one.reads for one in operands))
    stages = frozenset((var,)).union(*(one.stages for one in operands))
    if func.pattern == WITH_EPILOGUE:
        return _Value(math.inf, reads, stages, _rows(func))
    if func.pattern > INJECTIVE:
        return None
    fused = [one.value for one in operands if one.value]
    rows = {value.rows for value in fused if value.rows}
    kept = len(rows) == 1 and _is_sum(func.shapes[-1], *rows)
    whole = next(iter(rows)) if kept else ()
    return _Value(func.operations + sum(value.cost for value in fused), reads, stages, whole)


def _is_cut(value: _Value, func: _Function, at: int) -> bool:
    """Whether a function should read its operand at this place from memory."""
    if value.cost == 0 or (value.rows and value.rows == func.shapes[-1]):
        return False
    again = func.reads[at] - math.prod(func.shapes[at])
    return again > 0 and (value.cost > _HEAVY or value.cost * again > CALL)


def _operations(value: Any) -> int:
    return operations(value) + _DIVISION * sum(map(_is_division, collect(value, *_DIVIDING)))


def _is_division(value: Any) -> bool:
    """Whether integers that are data are divided, by a number that is no power of two."""
    number = int(value.b) if isinstance(value.b, tirx.IntImm) else 0
    whole = "int" in str(value.ty.dtype) and (number < 1 or number & (number - 1))
    return bool(whole and collect(value.a, tvm.ir.TensorLoad))


def _rows(func: _Function) -> tuple[int, ...]:
    """The shape of the only operand if the result has one element for each of its rows; else ()."""
    operand, *others = func.shapes
    return operand if len(others) == 1 and _is_sum(others[0], operand) else ()


def _is_sum(sums: tuple[int, ...], rows: tuple[int, ...]) -> bool:
    """Whether a shape is that of rows, with 1 in the place of one or more last axes."""
    kept = len(sums)
    while kept and sums[kept - 1] == 1:
        kept -= 1
    return len(sums) == len(rows) and sums[:kept] == rows[:kept] and sums != rows


def _reads(func: tirx.PrimFunc) -> tuple[int, ...]:
    """For each parameter, the most iterations among the blocks that always read it."""
    most: dict[Any, int] = defaultdict(int)
    for block in collect(func.body, tvm.s_tir.SBlock):
        iterations = math.prod(int(axis.dom.extent) for axis in block.iter_vars)
        for buffer in _always_read(block):
            most[buffer] = max(most[buffer], iterations)
    return tuple(most.get(parameter, 0) for parameter in func.params)


def _always_read(block: Any) -> list[Any]:
    """The buffers that a block reads in every iteration, not only under a condition."""
    found: list[Any] = []

    def skip_condition(call: Any) -> Any:
        return WalkResult.SKIP if is_condition(call) else None

    note = (tvm.ir.TensorLoad, lambda load: found.append(load.source))
    structural_walk(block.body, [(tvm.ir.Call, skip_condition), note], order="pre")
    return found
