"""Rounded numbers narrowed to bytes a register at a time, by instructions that saturate.

    for i in unrolled: y[16 i + lanes] = uint8(steps rounded by an addition, `rounding.py`)
    -->
    y[64 lanes] = packed(nearest(min(x_0, 255)), .., nearest(min(x_3, 255)))

x86 narrows one vector of 32 bits to bytes by two instructions of the one port that permutes; two
vectors to one of 16 bits, and two of these to one of bytes, by one each (`vpackssdw`, `vpackuswb`),
which clip. They take the places apart, 16 bytes each: one permutation of 32 bits orders them. A
number that is none, or less than 32 bits hold, is the least integer, as it is the least step there.

AArch64 has instructions for all of it, which keep the order: to the nearest integer (`fcvtns`), to
half as many bits (`sqxtn`, `sqxtun`). There what is no number would be 0, so that the least step is
held before, and the greatest afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..._tvm import at_step, has_features, op_name, structural_map, tirx, tvm
from .edge_values import is_arm
from .rounding import WITHOUT_NAN, Steps, less
from .vector_math import Expr, shared

_MOST = 4  # vectors of 32 bits in one of bytes
_TURN = 128  # between the numbers that a byte is, unsigned and signed


@dataclass(frozen=True)
class _Narrowed:
    """Bytes of a type that were rounded.

    low, high: of the numbers. zero: what the bytes are more than these. read: a byte that they are
    more as well, and that is to be taken off both ends; None for none.
    """

    value: Expr
    zero: int
    read: Expr | None
    low: int
    high: int
    kind: str

    @classmethod
    def of(cls, cast: Expr) -> _Narrowed | None:
        """What a vector of bytes is narrowed from; None where it is of anything else."""
        if (turned := _turned(cast)) is not None:
            narrowed = cls.of(turned)
            return narrowed and replace(narrowed, zero=narrowed.zero - _TURN, kind="int8")
        if not isinstance(cast, tirx.Cast) or cast.ty.dtype.with_lanes(1).itemsize != 1:
            return None
        steps, kind = Steps.of(cast.value), str(cast.ty.dtype.with_lanes(1))
        if steps is None or not steps.ends_are_known:
            return None
        return cls(steps.value, steps.more, steps.read, steps.low, steps.high, kind)

    def more(self, words: Expr) -> Expr:
        """Words of 16 bits, and `zero` and `read` more."""
        if not self.zero and self.read is None:
            return words
        number = tirx.const(self.zero, "int16")
        if self.read is not None:
            number += tirx.Cast("int16", self.read)
        added = tirx.Broadcast(number, words.ty.dtype.lanes)
        return tirx.call_llvm_pure_intrin(str(words.ty.dtype), "llvm.sadd.sat", words, added)

    def held(self, words: Expr, end: int, extreme: Any) -> Expr:
        """Words of 16 bits held to an end (by `tirx.Max` or `Min`) where bytes have room beyond."""
        widest = (tirx.min_value if extreme is tirx.Max else tirx.max_value)(self.kind)
        if end == int(widest.value):
            return words
        return extreme(words, tirx.Broadcast(tirx.const(end, "int16"), words.ty.dtype.lanes))


@dataclass(frozen=True)
class _Packs:
    """The instructions of an extension of x86, for so many lanes of 32 bits."""

    lanes: int
    feature: str
    words: str
    unsigned: str
    signed: str

    def nearest(self, steps: _Narrowed, value: Expr) -> Expr:
        """The whole numbers nearest to some, of `high` at most; the least of all for NaN."""
        lanes = value.ty.dtype.lanes
        high = tirx.Broadcast(less(steps.high, steps.read), lanes)
        held = shared(value, lambda x: tirx.Select(high < x, high, x))
        name = f"llvm.lrint.v{lanes}i32.v{lanes}f32"
        return tirx.call_llvm_pure_intrin(f"int32x{lanes}", name, held)

    def packed(self, steps: _Narrowed, vectors: list[Expr]) -> Expr:
        """Two to four vectors of whole numbers as one of bytes."""
        halves = [self._words(steps, vectors[at : at + 2]) for at in range(0, len(vectors), 2)]
        name = self.unsigned if steps.kind == "uint8" else self.signed

        def pair(left: Expr, right: Expr) -> Expr:
            kind = f"{steps.kind}x{_MOST * self.lanes}"
            made = tirx.call_llvm_pure_intrin(kind, name, left, right)
            return _ordered(made, len(vectors), self.lanes)

        return pair(*halves) if len(halves) == 2 else shared(halves[0], lambda one: pair(one, one))

    def _words(self, steps: _Narrowed, pair: list[Expr]) -> Expr:
        """One or two vectors of whole numbers as one of 16 bits, with `zero` more."""
        kind = f"int16x{2 * self.lanes}"

        def both(left: Expr, right: Expr) -> Expr:
            return tirx.call_llvm_pure_intrin(kind, self.words, left, right)

        words = both(*pair) if len(pair) == 2 else shared(pair[0], lambda one: both(one, one))
        return steps.held(steps.more(words), steps.low + steps.zero, tirx.Max)


class _ArmPacks:
    """The instructions of AArch64."""

    lanes = 4

    def nearest(self, steps: _Narrowed, value: Expr) -> Expr:
        """The whole numbers nearest to some, of `low` at least, as for NaN."""
        lanes = value.ty.dtype.lanes
        low = tirx.Broadcast(less(steps.low, steps.read), lanes)
        held = tirx.call_llvm_pure_intrin(f"float32x{lanes}", WITHOUT_NAN, value, low)
        if lanes == self.lanes:
            return self._whole(held)
        places = [list(range(at, at + self.lanes)) for at in range(0, lanes, self.lanes)]
        return shared(held, lambda x: _beside([self._whole(_lanes(x, p)) for p in places]))

    def _whole(self, value: Expr) -> Expr:
        return tirx.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.fcvtns", value)

    def packed(self, steps: _Narrowed, vectors: list[Expr]) -> Expr:
        """Two to four vectors of whole numbers as one of bytes."""
        name = "sqxtun" if steps.kind == "uint8" else "sqxtn"
        words = [_narrow("int16x4", "sqxtn", one) for one in vectors]
        pairs = [_beside((words[at : at + 2] * 2)[:2]) for at in range(0, len(words), 2)]
        most = steps.high + steps.zero
        held = [steps.held(steps.more(one), most, tirx.Min) for one in pairs]
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
    """The function, its bytes that were rounded narrowed as many as a register holds at once.

    Its loops over lanes are vectors already, others are not yet written out.
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
    """The widest instructions of a target, if it has any."""
    if target is None or target.kind.name != "llvm":
        return None
    if is_arm(target):
        return _ArmPacks()
    has = (one for one in _WIDEST_FIRST if has_features(str(target), (one.feature,)))
    return next(has, None)


def _rows_fused(loop: Any, packs: _Packs | _ArmPacks) -> Any:
    """Unrolled loops over rows of few whole vectors as one, so that rows are packed together."""
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
    """The unsigned bytes that a value has as signed ones, 128 less; None where it has none such."""
    if op_name(value) != "tirx.reinterpret" or str(value.ty.dtype.with_lanes(1)) != "int8":
        return None
    inner = value.args[0]
    if not isinstance(inner, tvm.ir.prim.expr.BitwiseXor):
        return None
    turn = inner.b.value if isinstance(inner.b, tirx.Broadcast) else inner.b
    unsigned = str(inner.a.ty.dtype.with_lanes(1)) == "uint8"
    return inner.a if unsigned and getattr(turn, "value", 0) == _TURN else None


def _loop(loop: Any, packs: _Packs | _ArmPacks) -> Any:
    """An unrolled loop of stores of whole vectors, which are packed together.

    Those that stand behind each other are stored as a wider one.
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
    """Bytes that are stored, or at which a table is read, and what is stored of more of them."""
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
    """The statements that store a vector of bytes, those of each start behind it.

    Where such parts follow one another they are one.
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
    """More bytes than a vector of 32 bits has lanes, if they were rounded."""
    count, rest = divmod(cast.ty.dtype.lanes, packs.lanes)
    steps = _Narrowed.of(cast) if 1 < count <= _MOST and not rest else None
    if steps is None:
        return cast

    def parts(whole: Expr) -> Expr:
        places = [range(at * packs.lanes, (at + 1) * packs.lanes) for at in range(count)]
        return packs.packed(steps, [_lanes(whole, list(one)) for one in places])

    return shared(packs.nearest(steps, steps.value), parts)


def _ordered(packed: Expr, count: int, lanes: int) -> Expr:
    """The bytes of the first vectors of four, of which each 16 bytes have a part of each."""
    parts = lanes // _MOST
    order = [_MOST * part + vector for vector in range(count) for part in range(parts)]
    kind = str(packed.ty.dtype.with_lanes(1))
    fours = tirx.reinterpret(f"int32x{lanes}", packed)
    return tirx.reinterpret(f"{kind}x{lanes * count}", _lanes(fours, order))


def _beside(vectors: list[Expr]) -> Expr:
    """Vectors one behind the other as one."""
    if len(vectors) == 1:
        return vectors[0]
    count = sum(one.ty.dtype.lanes for one in vectors)
    return tirx.Shuffle(vectors, [tirx.const(at, "int32") for at in range(count)])


def _narrow(kind: str, name: str, value: Expr) -> Expr:
    return tirx.call_llvm_pure_intrin(kind, f"llvm.aarch64.neon.{name}", value)


def _lanes(vector: Expr, places: list[int]) -> Expr:
    return tirx.Shuffle([vector], [tirx.const(at, "int32") for at in places])


def _is_row(place: Any, lanes: int) -> bool:
    """Whether an index is of so many elements that follow one another."""
    return isinstance(place, tirx.Ramp) and int(place.stride) == 1 and int(place.lanes) == lanes
