"""An estimate of a schedule's code size after unrolling and vectorising, before it is compiled.

LLVM's time grows with the square of a function's size: 2,000 vector statements take a second,
8,000 take ten seconds and 100,000 take hours.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .._tvm import collect, op_name, structural_equal, structural_hash, tirx, tvm
from ..marks.partition import PARTITION
from ..target import Target

# Most operations in a kernel's code, which take LLVM some seconds; default schedules have a tenth.
MOST_OPERATIONS = 1 << 14
# An exp, tanh, square root or other function counts as this many operations.
FUNCTION = 16

# TVM's name of a call that computes nothing ends in this: it reads the same bits as another type.
_SAME_BITS = "reinterpret"

ARITHMETIC = (
    *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.FloorDiv, tirx.FloorMod, tirx.Max, tirx.Min),
    *(tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE, tirx.Select, tirx.Cast),
)


class TooMuchCodeError(ValueError):
    """A schedule would take the compiler too long."""


def check_size(sch: Any, target: Target) -> None:
    """TooMuchCodeError where a schedule's code has more than MOST_OPERATIONS operations."""
    if (size := code_size(sch, target)) > MOST_OPERATIONS:
        raise TooMuchCodeError(
            f"would write out {size} operations, and {MOST_OPERATIONS} are the most"
        )


def code_size(sch: Any, target: Target) -> int:
    """Operations in the code of a schedule's program, each on one vector register."""
    return _size(sch.mod["main"].body, _Copies(max(1, target.vector_bytes)))


def operations(value: Any) -> int:
    """Operations that an expression takes; equal ones count once, those of indices not at all."""
    return _operations(_Expression(value))


def is_condition(call: Any) -> bool:
    """Whether a call is TVM's `if_then_else`, which is no function: only one branch runs."""
    return op_name(call).endswith("if_then_else")


@dataclass(frozen=True)
class _Expression:
    """An expression that compares and hashes by structure, for a cache shared by programs."""

    value: Any

    def __hash__(self) -> int:
        return int(structural_hash(self.value, map_free_vars=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Expression):
            return NotImplemented
        return bool(structural_equal(self.value, other.value, map_free_vars=True))


@lru_cache(maxsize=4096)
def _operations(expression: _Expression) -> int:
    loads = collect(expression.value, tvm.ir.TensorLoad)
    arithmetic = _distinct([expression.value], *ARITHMETIC)
    arithmetic -= _distinct([index for load in loads for index in load.indices], *ARITHMETIC)
    calls = [call for call in collect(expression.value, tvm.ir.Call) if not is_condition(call)]
    computing = [call for call in calls if not op_name(call).endswith(_SAME_BITS)]
    return len(arithmetic) + FUNCTION * len(_distinct(computing, tvm.ir.Call))


def _distinct(roots: list[Any], *kinds: Any) -> set[int]:
    """Hashes of the distinct nodes of these types: an inlined stage appears at each of its uses."""
    return {structural_hash(node) for root in roots for node in collect(root, *kinds)}


@dataclass(frozen=True)
class _Copies:
    """How many copies of a statement the code has.

    register: bytes of a vector register. unrolled, lanes: copies and vector lanes that the loops
    around it make. steps: iterations of the loops inside a pragma, which the compiler may unroll to
    at most `most` copies. parts: 2 where the rest of a partitioned loop is separate code, else 1.
    """

    register: int
    unrolled: int = 1
    lanes: int = 1
    steps: int = 1
    most: int = 0
    parts: int = 1

    def within(self, loop: Any) -> "_Copies":
        """The copies of a statement in the loop's body."""
        # A loop with a variable extent is never unrolled.
        inside, extent = self, getattr(loop.extent, "value", 1)
        if step := int(loop.annotations.get("pragma_auto_unroll_max_step", 0)):
            inside = replace(inside, steps=1, most=step)
        if loop.kind == tirx.ForKind.VECTORIZED:
            return replace(inside, lanes=inside.lanes * extent)
        if loop.kind == tirx.ForKind.UNROLLED:
            return replace(inside, unrolled=inside.unrolled * extent)
        if PARTITION in loop.annotations:  # the rest is separate code
            inside = replace(inside, parts=2)
        return replace(inside, steps=inside.steps * extent)

    def of(self, store: Any) -> int:
        """How many vector registers all copies of the statement compute together."""
        registers = math.ceil(self.lanes * store.buffer.dtype.bits / 8 / self.register)
        copies = max(self.unrolled, min(self.most, self.unrolled * self.steps))
        return registers * copies * self.parts


def _size(node: Any, copies: _Copies) -> int:
    if isinstance(node, tirx.For):
        return _size(node.body, copies.within(node))
    if isinstance(node, tirx.SeqStmt):
        return sum(_size(part, copies) for part in node.seq)
    if isinstance(node, tvm.s_tir.SBlockRealize):
        return _size(node.block.body, copies) + _size(node.block.init, copies)
    stores = collect(node, tirx.BufferStore) if node is not None else []
    return sum(copies.of(store) * (1 + operations(store.value)) for store in stores)
