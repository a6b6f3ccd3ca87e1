"""Sixteen steps of a sum of signed bytes are added up at once, with partial results in lanes.

    for r, c (unrolled): for i in range(16) (marked): acc[r, c] += x[r, k + i] * w[.., c, i]
    -->
    low, high = eight products of 16 bits each: of x[r, k ..] and w[.., c, ..]
    part[r, c] (4 lanes) += pairs added up of (low + high)        smull, smlal2, sadalp

and before and after the outermost of all loops that add to the same sums:

    part = 0  ..  for c by fours: acc[r, c ..] += each lane's sum of part[r, c ..]

AArch64 without dot products needs these three instructions for sixteen products. Neither rows nor
weights move between lanes here, unlike where lanes are columns (`dot.py`). No weight is -128, so
two products fit 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from .._lazy_tvm import at_step, collect, op_name, structural_map, tirx, tvm, uses
from ..system.checks import flag
from . import Mark, Place
from .dot import is_signed, signed_pairs

# Annotation of an innermost loop over steps.
LONG_DOT = "ansor.long_dot"
# Steps that are added up at once.
LONG_STEPS = 16
# LLVM's instruction for sums of pairs of lanes.
_FOLDED = "llvm.aarch64.neon.addp"
# LLVM's instruction for the sum of all lanes.
_TOTAL = "llvm.vector.reduce.add"
# Lanes of a partial result.
_LANES = 4
# Without this option LLVM loads the rows of several steps together, and spills sums.
_STEP_BY_STEP = ("-misched-cluster:bool=false",)


def summed_by_sixteens(sch: Any, loop: Any) -> None:
    """Let lowering add up the sixteen steps of an innermost loop at once, and unroll it."""
    sch.unroll(loop)
    sch.annotate(loop, LONG_DOT, True)


def long_dots(func: Any) -> Any:
    """The function, in which marked loops have partial results in lanes."""
    loops = collect(func.body, tirx.For)
    if not any(map(_is_marked, loops)) or not is_signed(func.attrs["target"]):
        return func
    found: list[_Nest] = []
    for loop in reversed(loops):  # outer ones first
        nest = _Nest.of(loop)
        if nest and not any(nest.steps.same_as(one.steps) for one in found):
            found.append(nest)

    def written(loop: Any) -> Any:
        return next((one.summed() for one in found if one.loops[0].same_as(loop)), loop)

    return func.with_body(structural_map(func.body, (tirx.For, written)))


def _is_marked(loop: Any) -> bool:
    return LONG_DOT in (loop.annotations or {})


@dataclass(frozen=True)
class _Nest:
    """The nest of all loops that add to the same sums, with the marked loop inside.

    pair: both factors, as the bytes of all steps. places: where each sum is stored, by its number.
    """

    loops: tuple[Any, ...]
    steps: Any
    pair: tuple[Any, ...]
    places: dict[int, Any]

    @classmethod
    def of(cls, loop: Any) -> _Nest | None:
        """The nest that begins with a loop; None where the loops have another form."""
        (*around, steps), conditions = _chain(loop)
        if not _is_marked(steps) or getattr(steps.extent, "value", 0) != LONG_STEPS:
            return None
        store = steps.body
        if not isinstance(store, tirx.BufferStore) or not all(_is_known(o, store) for o in around):
            return None
        over = [one for one in around if uses(store.indices[0], one.loop_var)]
        value = store.value
        if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
            return None
        pair = [_sixteen(factor, steps) for factor in (value.b.a, value.b.b)]
        if any(one is None for one in pair):
            return None
        places = _places(over, store, conditions)
        if places is None:
            return None
        return cls(tuple(around) or (steps,), steps, tuple(pair), places)

    def summed(self) -> Any:
        """The statements that replace the nest."""
        part = tirx.decl_buffer((math.prod(self._sizes) * _LANES,), "int32", "part")
        zero = tirx.Broadcast(tirx.const(0, "int32"), _LANES)
        starts = [tirx.BufferStore(part, zero, [_row(at * _LANES)]) for at in self.places]
        at = tirx.const(0, "int32")
        for loop, size in zip(self._over, self._sizes, strict=True):
            at = at * size + (loop.loop_var - loop.min)
        place = [_row(at * _LANES)]
        added = tirx.BufferStore(
            part, tirx.BufferLoad(part, place) + signed_pairs(*self.pair), place
        )
        inside = lambda one: added if one.same_as(self.steps) else one  # noqa: E731
        body = structural_map(self.loops[0], (tirx.For, inside))
        return tirx.SeqStmt([tirx.AllocBuffer(part), *starts, body, *self._folded(part)])

    @property
    def _over(self) -> list[Any]:
        """The loops over sums."""
        index = self.steps.body.indices[0]
        return [one for one in self.loops if uses(index, one.loop_var)]

    @property
    def _sizes(self) -> list[int]:
        return [int(loop.extent) for loop in self._over]

    def _folded(self, part: Any) -> Iterator[Any]:
        """The statements that add partial results to the sums, four contiguous sums at a time."""
        left, buffer = dict(self.places), self.steps.body.buffer
        while left:
            first = next(iter(left))
            four = [first + n for n in range(_LANES)]
            beside = _are_beside([left.get(at) for at in four])
            parts = [tirx.BufferLoad(part, [_row(at * _LANES)]) for at in four]
            if beside:
                place = _row(left[first])
                total = _pairwise(_pairwise(*parts[:2]), _pairwise(*parts[2:]))
            else:
                place = left[first]
                total = tirx.call_llvm_pure_intrin("int32", _TOTAL, parts[0])
            yield tirx.BufferStore(buffer, tirx.BufferLoad(buffer, [place]) + total, [place])
            for at in four if beside else four[:1]:
                del left[at]


def _chain(loop: Any) -> tuple[list[Any], list[Any]]:
    """A loop, the perfectly nested loops inside it, and the conditions between them."""
    loops, conditions = [], []
    while loop is not None:
        if isinstance(loop, tirx.For):
            loops.append(loop)
            loop = _beside_fetches(loop.body)
        else:
            conditions.append(loop.condition)
            loop = None if loop.else_case is not None else _beside_fetches(loop.then_case)
    return loops, conditions


def _beside_fetches(body: Any) -> Any:
    """The only loop or condition in a body that otherwise has only calls; else None."""
    parts = list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
    found = [one for one in parts if not isinstance(one, tirx.Evaluate)]
    alone = len(found) == 1 and isinstance(found[0], (tirx.For, tirx.IfThenElse))
    return found[0] if alone else None


def _places(over: list[Any], store: Any, conditions: list[Any]) -> dict[int, Any] | None:
    """Where each sum is stored, by its number among the steps of all loops over sums.

    None where it is not known at compile time which sums the conditions leave.
    """
    found = {}
    for at, each in enumerate(product(*(range(int(loop.extent)) for loop in over))):
        steps = list(zip(over, each, strict=True))
        there = [_at_steps(one, steps) for one in conditions]
        if not all(isinstance(one, tirx.IntImm) for one in there):
            return None
        if all(int(one) for one in there):
            found[at] = _at_steps(store.indices[0], steps)
    return found


def _at_steps(expr: Any, steps: list[tuple[Any, int]]) -> Any:
    """An expression at the given step of each loop."""
    for loop, step in steps:
        expr = at_step(expr, loop, step)
    return tvm.sym.Analyzer().simplify(expr)


def _is_known(loop: Any, store: Any) -> bool:
    """Whether a loop is over steps of the sums, or is an unrolled loop over sums."""
    constant = isinstance(loop.extent, tirx.IntImm)
    over = uses(store.indices[0], loop.loop_var)
    return not over or (constant and loop.kind == tirx.ForKind.UNROLLED)


def _sixteen(factor: Any, loop: Any) -> Any:
    """The signed bytes of a factor at all steps of a loop, if they are contiguous; else None."""
    while isinstance(factor, tirx.Cast):
        factor = factor.value
    if op_name(factor) == "prim.if_then_else":
        inside, read, border = factor.args
        bytes_ = None if _varies(loop, inside, border) else _sixteen(read, loop)
        if bytes_ is None:
            return None
        return tirx.if_then_else(inside, bytes_, tirx.Broadcast(border, LONG_STEPS))
    if not isinstance(factor, tvm.ir.TensorLoad) or str(factor.ty.dtype) != "int8":
        return None
    (index,) = factor.indices
    apart = tvm.sym.Analyzer().simplify(at_step(index, loop, 1) - at_step(index, loop, 0))
    last = tvm.sym.Analyzer().simplify(at_step(index, loop, 15) - at_step(index, loop, 0))
    if [getattr(one, "value", 0) for one in (apart, last)] != [1, LONG_STEPS - 1]:
        return None
    return tirx.BufferLoad(factor.source, [_row(at_step(index, loop, 0), LONG_STEPS)])


def _varies(loop: Any, *found: Any) -> bool:
    return any(uses(one, loop.loop_var) for one in found)


def _are_beside(places: list[Any]) -> bool:
    """Whether four places exist and are contiguous."""
    if any(one is None for one in places):
        return False
    simplify = tvm.sym.Analyzer().simplify
    apart = [simplify(one - places[0]) for one in places]
    return [getattr(one, "value", -1) for one in apart] == list(range(_LANES))


def _pairwise(left: Any, right: Any) -> Any:
    return tirx.call_llvm_pure_intrin("int32x4", _FOLDED, left, right)


def _row(start: Any, count: int = _LANES) -> Any:
    start = tirx.const(start, "int32") if isinstance(start, int) else start
    return tirx.Ramp(start, tirx.const(1, start.ty.dtype), count)


MARK = Mark(
    {LONG_DOT: flag}, Place.VECTORS, long_dots, _STEP_BY_STEP, verbs=("summed_by_sixteens",)
)
