"""Narrow rounded numbers to bytes a register at a time, by saturating instructions.

    for i in unrolled: y[16 i + lanes] = uint8(steps rounded by an addition, `rounding.py`)
    -->
    y[64 lanes] = packed(nearest(min(x_0, 255)), .., nearest(min(x_3, 255)))

Alone, a vector of 32-bit elements takes x86 two instructions of its single permute port to become
bytes. Packed together, two such vectors become one of 16-bit elements, and two of these become one
of bytes, by one saturating instruction each (`vpackssdw`, `vpackuswb`). These instructions work on
each 16 bytes separately, so a permutation of 32-bit elements restores the order at the end. A NaN,
or a number below the range of int32, becomes the least int32, which saturates to the least step.

AArch64 has instructions for all of it that keep the order: to the nearest integer (`fcvtns`), and
to half as many bits (`sqxtn`, `sqxtun`). NaN would become 0 there. So numbers are limited to the
least step before the conversion, and to the greatest one after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..._tvm import at_step, has_features, lane, op_name, structural_map, tirx, tvm
from .edge_values import is_arm
from .rounding import WITHOUT_NAN, Steps, less
from .vector_math import Expr, shared

_MOST = 4  # vectors of 32-bit elements that fit one vector of bytes
_TURN = 128  # u ^ 0x80, read as a signed byte, is u - 128


@dataclass(frozen=True)
class _Narrowed:
    """A vector of bytes that was rounded from floats: byte = nearest(value) + zero + read.

    value: the floats. low, high: the ends of the rounded numbers; `read` is to be subtracted from
    both. zero: a constant. read: a byte that is read from memory, or None. kind: the type of the
    bytes. bounded: whether the floats are numbers that surely fit int32.
    """

    value: Expr
    zero: int
    read: Expr | None
    low: int
    high: int
    kind: str
    bounded: bool

    @classmethod
    def of(cls, cast: Expr) -> _Narrowed | None:
        """The rounding that a vector of bytes comes from; None where it is not rounded."""
        if (turned := _turned(cast)) is not None:
            narrowed = cls.of(turned)
            return narrowed and replace(narrowed, zero=narrowed.zero - _TURN, kind="int8")
        if not isinstance(cast, tirx.Cast) or cast.ty.dtype.with_lanes(1).itemsize != 1:
            return None
        steps, kind = Steps.of(cast.value), str(cast.ty.dtype.with_lanes(1))
        if steps is None or not steps.ends_are_known:
            return None
        ends = steps.low, steps.high
        return cls(steps.value, steps.more, steps.read, *ends, kind, steps.bounded)

    def more(self, words: Expr) -> Expr:
        """16-bit words plus `zero` and `read`."""
        if not self.zero and self.read is None:
            return words
        number = tirx.const(self.zero, "int16")
        if self.read is not None:
            number += tirx.Cast("int16", self.read)
        added = tirx.Broadcast(number, words.ty.dtype.lanes)
        return tirx.call_llvm_pure_intrin(str(words.ty.dtype), "llvm.sadd.sat", words, added)

    def held(self, words: Expr, end: int, extreme: Any) -> Expr:
        """16-bit words limited to an end by `tirx.Max` or `Min`.

        They stay as they are where the end is that of the bytes' type, which saturate there anyway.
        """
        widest = (tirx.min_value if extreme is tirx.Max else tirx.max_value)(self.kind)
        if end == int(widest.value):
            return words
        return extreme(words, tirx.Broadcast(tirx.const(end, "int16"), words.ty.dtype.lanes))


@dataclass(frozen=True)
class _Packs:
    """The packing instructions of an x86 extension, for vectors of `lanes` 32-bit elements.

    feature: LLVM's name of the extension. words, unsigned, signed: LLVM's names of the instructions
    that pack to 16-bit words, to uint8 and to int8.
    """

    lanes: int
    feature: str
    words: str
    unsigned: str
    signed: str

    def nearest(self, steps: _Narrowed, value: Expr) -> Expr:
        """The nearest integers to floats, at most `high`; for NaN the least int32.

        What fits int32 is limited when it is packed.
        """
        lanes = value.ty.dtype.lanes
        name = f"llvm.lrint.v{lanes}i32.v{lanes}f32"
        if steps.bounded:
            return tirx.call_llvm_pure_intrin(f"int32x{lanes}", name, value)
        high = tirx.Broadcast(less(steps.high, steps.read), lanes)
        held = shared(value, lambda x: tirx.Select(high < x, high, x))
        return tirx.call_llvm_pure_intrin(f"int32x{lanes}", name, held)

    def packed(self, steps: _Narrowed, vectors: list[Expr]) -> Expr:
        """Two to four vectors of int32 packed to one of bytes."""
        halves = [self._words(steps, vectors[at : at + 2]) for at in range(0, len(vectors), 2)]
        name = self.unsigned if steps.kind == "uint8" else self.signed

        def pair(left: Expr, right: Expr) -> Expr:
            kind = f"{steps.kind}x{_MOST * self.lanes}"
            made = tirx.call_llvm_pure_intrin(kind, name, left, right)
            return _ordered(made, len(vectors), self.lanes)

        return pair(*halves) if len(halves) == 2 else shared(halves[0], lambda one: pair(one, one))

    def _words(self, steps: _Narrowed, pair: list[Expr]) -> Expr:
        """One or two vectors of int32 packed to one of 16-bit words, with `zero` added."""
        kind = f"int16x{2 * self.lanes}"

        def both(left: Expr, right: Expr) -> Expr:
            return tirx.call_llvm_pure_intrin(kind, self.words, left, right)

        words = both(*pair) if len(pair) == 2 else shared(pair[0], lambda one: both(one, one))
        above = steps.held(steps.more(words), steps.low + steps.zero, tirx.Max)
        return steps.held(above, steps.high + steps.zero, tirx.Min) if steps.bounded else above


class _ArmPacks:
    """The packing instructions of AArch64."""

    lanes = 4

    def nearest(self, steps: _Narrowed, value: Expr) -> Expr:
        """The nearest integers to floats, at least `low`, which NaN becomes as well.

        What fits int32 is limited when it is packed.
        """
        lanes = value.ty.dtype.lanes
        held = value
        if not steps.bounded:
            low = tirx.Broadcast(less(steps.low, steps.read), lanes)
            held = tirx.call_llvm_pure_intrin(f"float32x{lanes}", WITHOUT_NAN, value, low)
        if lanes == self.lanes:
            return self._whole(held)
        places = [list(range(at, at + self.lanes)) for at in range(0, lanes, self.lanes)]
        return shared(held, lambda x: _beside([self._whole(_lanes(x, p)) for p in places]))

    def _whole(self, value: Expr) -> Expr:
        return tirx.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.fcvtns", value)

    def packed(self, steps: _Narrowed, vectors: list[Expr]) -> Expr:
        """Two to four vectors of int32 packed to one of bytes."""
        name = "sqxtun" if steps.kind == "uint8" else "sqxtn"
        words = [_narrow("int16x4", "sqxtn", one) for one in vectors]
        pairs = [_beside((words[at : at + 2] * 2)[:2]) for at in range(0, len(words), 2)]
        least, most = steps.low + steps.zero, steps.high + steps.zero
        held = [steps.held(steps.more(one), most, tirx.Min) for one in pairs]
        if steps.bounded:
            held = [steps.held(one, least, tirx.Max) for one in held]
        made = _beside([_narrow(f"{steps.kind}x8", name, one) for one in held])
        if len(vectors) % 2 == 0:
            return made
        return _lanes(made, list(range(self.lanes * len(vectors))))


_WIDEST_FIRST = (
    _Packs(
        16,
        "avx512bw",
        "llvm.x86.avx512.packssdw.512",
        "llvm.x86.avx512.packuswb.512",
        "llvm.x86.avx512.packsswb.512",
    ),
    _Packs(8, "avx2", "llvm.x86.avx2.packssdw", "llvm.x86.avx2.packuswb", "llvm.x86.avx2.packsswb"),
)


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.BytePacks")
def byte_packs(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with its rounded bytes narrowed by whole registers.

    Vectorised loops have become vectors already; unrolled loops are still loops.
    """
    packs = _of(func.attrs.get("target") if func.attrs else None)
    if packs is None:
        return func
    narrow = [
        (tirx.For, lambda loop: _loop(loop, packs)),
        (tirx.Cast, lambda cast: _cast(cast, packs)),
    ]
    fused = structural_map(func.body, (tirx.For, lambda loop: _rows_fused(loop, packs)))
    return func.with_body(structural_map(fused, narrow))


def _of(target: Any) -> _Packs | _ArmPacks | None:
    """The widest packing instructions of a target, or None."""
    if target is None or target.kind.name != "llvm":
        return None
    if is_arm(target):
        return _ArmPacks()
    has = (one for one in _WIDEST_FIRST if has_features(str(target), (one.feature,)))
    return next(has, None)


def _rows_fused(loop: Any, packs: _Packs | _ArmPacks) -> Any:
    """Two nested unrolled loops fused, so that vectors of several rows are packed together.

    Only where rows have few whole vectors of rounded bytes; other loops stay as they are.
    """
    inner = loop.body
    both = [one for one in (loop, inner) if getattr(one, "kind", None) == tirx.ForKind.UNROLLED]
    if len(both) < 2 or not isinstance(inner.body, tirx.BufferStore):
        return loop
    count, place = getattr(inner.extent, "value", _MOST), inner.body.indices[-1]
    narrowed = _Narrowed.of(_read(inner.body.value)[0])
    if narrowed is None or count >= _MOST or not _is_row(place, packs.lanes):
        return loop
    at = tirx.Var("vector", loop.loop_var.ty.dtype)
    places = {loop.loop_var: at // count + loop.min, inner.loop_var: at % count + inner.min}
    body = structural_map(inner.body, (tirx.Var, lambda var: places.get(var, var)))
    return tirx.For(at, loop.min * 0, loop.extent * count, loop.kind, body)


def _turned(value: Expr) -> Expr | None:
    """The unsigned bytes u of `int8(u ^ 0x80)`, which is u - 128; None for any other value."""
    if op_name(value) != "tirx.reinterpret" or str(value.ty.dtype.with_lanes(1)) != "int8":
        return None
    inner = value.args[0]
    if not isinstance(inner, tvm.ir.prim.expr.BitwiseXor):
        return None
    turn = lane(inner.b)
    unsigned = str(inner.a.ty.dtype.with_lanes(1)) == "uint8"
    return inner.a if unsigned and getattr(turn, "value", 0) == _TURN else None


def _loop(loop: Any, packs: _Packs | _ArmPacks) -> Any:
    """An unrolled loop that stores whole vectors, written out with several packed together.

    Adjacent vectors are stored as one wider vector.
    """
    store, count = loop.body, getattr(loop.extent, "value", 0)
    if loop.kind != tirx.ForKind.UNROLLED or not isinstance(store, tirx.BufferStore) or count < 2:
        return loop
    narrow, made_of = _read(store.value)
    place, steps = store.indices[-1], _Narrowed.of(narrow)
    if steps is None or not _is_row(place, packs.lanes) or len(store.indices) > 1:
        return loop

    def at(expr: Expr, step: int) -> Expr:
        return at_step(expr, loop, step)

    made = []
    for first in range(0, count, _MOST):
        group = range(first, min(first + _MOST, count))
        starts = [at(place.base, n) for n in group]
        if len(group) == 1:
            row = tirx.Ramp(*starts, place.stride, packs.lanes)
            made.append(tirx.BufferStore(store.buffer, at(store.value, first), [row]))
            continue
        packed = packs.packed(steps, [packs.nearest(steps, at(steps.value, n)) for n in group])
        made += _stored(store.buffer, made_of(packed), starts, packs.lanes)
    return tirx.SeqStmt(made) if len(made) > 1 else made[0]


def _read(value: Expr) -> tuple[Expr, Callable[[Expr], Expr]]:
    """The bytes of a stored value, and a function from more such bytes to the value to store.

    They are the value itself, or the indices at which it reads a table.
    """
    table = isinstance(value, tvm.ir.TensorLoad) and len(value.indices) == 1
    places = value.indices[0] if table else None
    if not isinstance(places, tirx.Cast) or places.value.ty.dtype.with_lanes(1).itemsize != 1:
        return value, lambda packed: packed
    kind, source = places.ty.dtype, value.source

    def found(packed: Expr) -> Expr:
        wide = tirx.Cast(str(kind.with_lanes(packed.ty.dtype.lanes)), packed)
        return tirx.BufferLoad(source, [wide])

    return places.value, found


def _stored(buffer: Any, value: Expr, starts: list[Any], lanes: int) -> list[Any]:
    """The statements that store a vector of bytes: `lanes` of them at each start.

    Adjacent parts are stored together.
    """
    simplify, firsts = tvm.sym.Analyzer().simplify, [0]
    for at in range(1, len(starts)):
        apart = simplify(starts[at] - starts[at - 1])
        if not isinstance(apart, tirx.IntImm) or int(apart.value) != lanes:
            firsts.append(at)
    packed = tirx.Var("packed", value.ty.dtype)
    stores = []
    for first, end in zip(firsts, [*firsts[1:], len(starts)], strict=True):
        whole = end - first == len(starts)
        part = value if whole else _lanes(packed, list(range(first * lanes, end * lanes)))
        row = tirx.Ramp(starts[first], tirx.const(1, starts[first].ty.dtype), part.ty.dtype.lanes)
        stores.append(tirx.BufferStore(buffer, part, [row]))
    return stores if len(stores) == 1 else [tirx.Bind(packed, value), *stores]


def _cast(cast: Expr, packs: _Packs | _ArmPacks) -> Expr:
    """A cast to a vector of bytes from several vectors of rounded 32-bit elements, packed together.

    Any other cast stays as it is.
    """
    count, rest = divmod(cast.ty.dtype.lanes, packs.lanes)
    steps = _Narrowed.of(cast) if 1 < count <= _MOST and not rest else None
    if steps is None:
        return cast

    def parts(whole: Expr) -> Expr:
        places = [range(at * packs.lanes, (at + 1) * packs.lanes) for at in range(count)]
        return packs.packed(steps, [_lanes(whole, list(one)) for one in places])

    return shared(packs.nearest(steps, steps.value), parts)


def _ordered(packed: Expr, count: int, lanes: int) -> Expr:
    """The bytes of the first `count` of four packed vectors, in the order of elements.

    Each 16 bytes of `packed` have a part of every vector.
    """
    parts = lanes // _MOST
    order = [_MOST * part + vector for vector in range(count) for part in range(parts)]
    kind = str(packed.ty.dtype.with_lanes(1))
    fours = tirx.reinterpret(f"int32x{lanes}", packed)
    return tirx.reinterpret(f"{kind}x{lanes * count}", _lanes(fours, order))


def _beside(vectors: list[Expr]) -> Expr:
    """The concatenation of vectors."""
    if len(vectors) == 1:
        return vectors[0]
    count = sum(one.ty.dtype.lanes for one in vectors)
    return tirx.Shuffle(vectors, [tirx.const(at, "int32") for at in range(count)])


def _narrow(kind: str, name: str, value: Expr) -> Expr:
    return tirx.call_llvm_pure_intrin(kind, f"llvm.aarch64.neon.{name}", value)


def _lanes(vector: Expr, places: list[int]) -> Expr:
    return tirx.Shuffle([vector], [tirx.const(at, "int32") for at in places])


def _is_row(place: Any, lanes: int) -> bool:
    """Whether an index is a row of `lanes` adjacent elements."""
    return isinstance(place, tirx.Ramp) and int(place.stride) == 1 and int(place.lanes) == lanes
