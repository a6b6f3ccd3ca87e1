"""Four steps of a sum become one instruction: signed bytes times weights that are parts of words.

    for i in range(4) (marked): for lane: acc[lane] += x[k + i] * (words[lane] >> (8 i + s) & mask)
    -->
    acc = dot(acc, words >> s & mask in each byte, x[k .. k + 3] for all lanes)       vpdpbusd

A mask has four or eight bits. With 4-bit weights s is 0 or 4, so that a word holds two groups of
four steps. Loops of other forms stay as they are.

Without VNNI, x86 multiplies 4-bit weights so: the pairs of eight groups, an unrolled loop around
this one, are added up in 16 bits, which these weights do not exceed, and then in 32 bits:

    for g in range(8) (unrolled): for v: for i in range(4) (marked): for lane: acc[v, lane] += ...
    -->
    for v: pairs = the sum over g of x[4 g + i] * weight[4 g + i, v] in pairs         vpmaddubsw
           acc[v] += pairs added up                                                   vpmaddwd
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

from .._lazy_tvm import at_step, structural_map, tirx, tvm, uses
from ..system.checks import flag
from . import Mark, Place
from .dot import PAIR, PAIRS, STEPS, Table, instruction, named

# Annotation of a loop over the steps, around one over lanes.
WORD_DOT = "ansor.word_dot"
# Masks of a byte, each with the mask of a word that repeats it four times.
_FOUR_BITS = 15
_MASKS = {_FOUR_BITS: 0x0F0F0F0F, 255: -1}
_BITS = 8
# For a number of 32-bit lanes: what multiplies unsigned by signed bytes, and adds up pairs in 16
# bits, which saturate.
_BYTE_PAIRS: Table = {
    16: (("avx512bw",), "llvm.x86.avx512.pmaddubs.w.512"),
    8: (("avx2",), "llvm.x86.avx2.pmadd.ub.sw"),
    4: (("sse4.1",), "llvm.x86.ssse3.pmadd.ub.sw.128"),
}
# How many groups of steps are added up in 16 bits: two products of 15 and -128 for each.
_GROUPS = 8


def summed_by_words(sch: Any, loop: Any) -> None:
    """Let lowering add up the four steps of a loop, around one over lanes, by one instruction."""
    sch.annotate(loop, WORD_DOT, True)


def word_dots(func: Any) -> Any:
    """The function with marked loops as dot products. Loops over lanes must be vectors already."""
    target, body = func.attrs["target"], func.body
    for change in (_in_pairs, _added_up):
        body = structural_map(body, (tirx.For, partial(change, target)))
    return func.with_body(body)


def _in_pairs(target: Any, loop: Any) -> Any:
    """An unrolled loop over groups of steps as sums of all of them, where there is no VNNI."""
    marked, unrolled = _marked(loop), loop.kind == tirx.ForKind.UNROLLED
    if marked is loop or not unrolled or not 0 < _count(loop) <= _GROUPS:
        return loop
    sums = _Sums.of(marked)
    pairs = sums and sums.pairs(target)
    moves = any(uses(index, loop.loop_var) for index in marked.body.indices)
    if sums is None or pairs is None or moves:
        return loop
    total = reduce(add, (at_step(pairs, loop, group) for group in range(_count(loop))))
    store = _stored(marked, sums.with_pairs(target, total))
    return structural_map(loop.body, (tirx.For, lambda one: store if one.same_as(marked) else one))


def _marked(loop: Any) -> Any:
    """The marked loop in a nest; the nest's first loop where it has none."""
    found = loop
    while isinstance(found, tirx.For) and WORD_DOT not in (found.annotations or {}):
        found = found.body
    return found if isinstance(found, tirx.For) else loop


def _count(loop: Any) -> int:
    """A loop's constant extent; 0 for another."""
    return int(getattr(loop.extent, "value", 0))


def _added_up(target: Any, loop: Any) -> Any:
    if WORD_DOT not in (loop.annotations or {}):
        return loop
    sums = _Sums.of(loop)
    added = sums and sums.added_up(target)
    return loop if added is None else _stored(loop, added)


def _stored(loop: Any, value: Any) -> Any:
    """A loop's store, with another value."""
    return tirx.BufferStore(loop.body.buffer, value, loop.body.indices)


@dataclass(frozen=True)
class _Sums:
    """The sums of a marked loop.

    row: the load of the row's bytes. words, shift, mask: the weights' words, and how to extract the
    weights.
    """

    loop: Any
    row: Any
    words: Any
    shift: Any
    mask: int

    @classmethod
    def of(cls, loop: Any) -> _Sums | None:
        """The sums of a loop; None where it has another form."""
        value = getattr(loop.body, "value", None)
        if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
            return None
        row, weight = map(_inside, (value.b.a, value.b.b))
        shifted, mask = map(_inside, _operands(weight, tirx.BitwiseAnd))
        words, shift = map(_inside, _operands(shifted, tirx.RShift))
        loads = all(isinstance(one, tvm.ir.TensorLoad) for one in (row, words))
        if (
            not loads
            or _count(loop) != STEPS
            or not isinstance(mask, tirx.IntImm)
            or int(mask.value) not in _MASKS
        ):
            return None
        found = cls(loop, row, words, shift, int(mask.value))
        return found if found._is_of_bytes() else None

    def _is_of_bytes(self) -> bool:
        """Whether the steps' bytes are contiguous, and their weights bytes of the same words."""
        kinds = str(self.row.ty.dtype), str(self.words.ty.dtype.with_lanes(1))
        same = not uses(self.words.indices[0], self.loop.loop_var) and kinds == ("int8", "int32")
        pairs = ((self.row.indices[0], 1), (self.shift, _BITS))
        return same and all(self._apart(index, each) for index, each in pairs)

    def _apart(self, index: Any, each: int) -> bool:
        """Whether an index grows by `each` at each step."""
        known, first = tvm.sym.Analyzer(), at_step(index, self.loop, 0)
        return all(
            known.can_prove_equal(at_step(index, self.loop, step), first + each * step)
            for step in range(STEPS)
        )

    @property
    def lanes(self) -> int:
        """How many lanes the sums have."""
        return int(self.words.ty.dtype.lanes)

    @property
    def before(self) -> Any:
        """The sums before these steps."""
        return self.loop.body.value.a

    def added_up(self, target: Any) -> Any | None:
        """The sums behind all steps; None where the processor has no instruction for them."""
        name = instruction(target, self.lanes)
        if name:
            given = self.before, self._weights, self._row
            return tirx.call_llvm_pure_intrin(self.before.ty.dtype, name, *given)
        pairs = self.pairs(target)
        return None if pairs is None else self.with_pairs(target, pairs)

    def pairs(self, target: Any) -> Any | None:
        """The products, added up in pairs in 16 bits; None if that may saturate, or with VNNI."""
        name = named(target, self.lanes, _BYTE_PAIRS)
        if self.mask != _FOUR_BITS or instruction(target, self.lanes) or not name:
            return None
        kind = f"int16x{PAIR * self.lanes}"
        return tirx.call_llvm_pure_intrin(kind, name, self._weights, self._row)

    def with_pairs(self, target: Any, pairs: Any) -> Any:
        """The sums so far plus those of pairs in 16 bits."""
        name = named(target, self.lanes, PAIRS)
        ones = tirx.Broadcast(tirx.const(1, "int16"), PAIR * self.lanes)
        kind = self.before.ty.dtype
        return self.before + tirx.call_llvm_pure_intrin(kind, name, pairs, ones)

    @property
    def _weights(self) -> Any:
        """The weights of all steps, a byte each of a lane's word."""
        shift = tirx.Broadcast(at_step(self.shift, self.loop, 0), self.lanes)
        mask = tirx.Broadcast(tirx.const(_MASKS[self.mask], "int32"), self.lanes)
        weights = tirx.shift_right(self.words, shift) & mask
        return tirx.reinterpret(f"uint8x{STEPS * self.lanes}", weights)

    @property
    def _row(self) -> Any:
        """The row's bytes of all steps as a word, for each lane."""
        first = at_step(self.row.indices[0], self.loop, 0)
        steps = tirx.Ramp(first, tirx.const(1, first.ty.dtype), STEPS)
        word = tirx.reinterpret("int32", tirx.BufferLoad(self.row.source, [steps]))
        return tirx.reinterpret(f"int8x{STEPS * self.lanes}", tirx.Broadcast(word, self.lanes))


def _inside(value: Any) -> Any:
    """An expression without the broadcasts and casts around it."""
    while isinstance(value, (tirx.Broadcast, tirx.Cast)):
        value = value.value
    return value


def _operands(value: Any, kind: Any) -> tuple[Any, Any]:
    """The operands of an operation of a kind; another expression twice, which then fits nothing."""
    return (value.a, value.b) if isinstance(value, kind) else (value, value)


MARK = Mark({WORD_DOT: flag}, Place.VECTORS, word_dots, verbs=("summed_by_words",))
