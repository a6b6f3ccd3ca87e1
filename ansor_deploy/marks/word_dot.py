"""Four steps of a sum become one instruction: signed bytes times weights that are parts of words.

    for i in range(4) (marked): for lane: acc[lane] += x[k + i] * (words[lane] >> (8 i + s) & mask)
    -->
    acc = dot(acc, words >> s & mask in each byte, x[k .. k + 3] for all lanes)       vpdpbusd

A mask has four or eight bits. With 4-bit weights s is 0 or 4, so that a word holds two groups of
four steps. Loops of other forms stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._lazy_tvm import at_step, structural_map, tirx, tvm, uses
from ..system.checks import flag
from . import Mark, Place
from .dot import STEPS, instruction

# Annotation of a loop over the steps, around one over lanes.
WORD_DOT = "ansor.word_dot"
# Masks of a byte, each with the mask of a word that repeats it four times.
_MASKS = {15: 0x0F0F0F0F, 255: -1}
_BITS = 8


def summed_by_words(sch: Any, loop: Any) -> None:
    """Let lowering add up the four steps of a loop, around one over lanes, by one instruction."""
    sch.annotate(loop, WORD_DOT, True)


def word_dots(func: Any) -> Any:
    """The function with marked loops as dot products. Loops over lanes must be vectors already."""
    target = func.attrs["target"]
    return func.with_body(structural_map(func.body, (tirx.For, lambda one: _added_up(one, target))))


def _added_up(loop: Any, target: Any) -> Any:
    if WORD_DOT not in (loop.annotations or {}):
        return loop
    sums = _Sums.of(loop) if getattr(loop.extent, "value", 0) == STEPS else None
    name = sums and instruction(target, sums.lanes)
    return sums.stored(name) if sums and name else loop


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
        if not loads or not isinstance(mask, tirx.IntImm) or int(mask.value) not in _MASKS:
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

    def stored(self, name: str) -> Any:
        """The loop's store, with sums by the instruction of this name."""
        store, lanes = self.loop.body, self.lanes
        wide = lambda value: tirx.Broadcast(value, lanes)  # noqa: E731
        shifted = tirx.shift_right(self.words, wide(at_step(self.shift, self.loop, 0)))
        weights = shifted & wide(tirx.const(_MASKS[self.mask], "int32"))
        first = at_step(self.row.indices[0], self.loop, 0)
        steps = tirx.Ramp(first, tirx.const(1, first.ty.dtype), STEPS)
        row = wide(tirx.reinterpret("int32", tirx.BufferLoad(self.row.source, [steps])))
        given = (
            tirx.reinterpret(f"uint8x{STEPS * lanes}", weights),
            tirx.reinterpret(f"int8x{STEPS * lanes}", row),
        )
        sums = tirx.call_llvm_pure_intrin(f"int32x{lanes}", name, store.value.a, *given)
        return tirx.BufferStore(store.buffer, sums, store.indices)


def _inside(value: Any) -> Any:
    """An expression without the broadcasts and casts around it."""
    while isinstance(value, (tirx.Broadcast, tirx.Cast)):
        value = value.value
    return value


def _operands(value: Any, kind: Any) -> tuple[Any, Any]:
    """The operands of an operation of a kind; another expression twice, which then fits nothing."""
    return (value.a, value.b) if isinstance(value, kind) else (value, value)


MARK = Mark({WORD_DOT: flag}, Place.VECTORS, word_dots, verbs=("summed_by_words",))
