"""Rounded numbers narrowed to bytes a register at a time, by instructions that saturate.

    for i in unrolled: y[16 i + lanes] = uint8(steps rounded by an addition, `rounding.py`)
    -->
    y[64 lanes] = packed(nearest(min(x_0, 255)), .., nearest(min(x_3, 255)))

x86 narrows one vector of 32 bits to bytes by two instructions of the one port that permutes; two
vectors to one of 16 bits, and two of these to one of bytes, by one each (`vpackssdw`, `vpackuswb`),
which clip. They take the places apart, 16 bytes each: one permutation of 32 bits orders them. A
number that is none, or less than 32 bits hold, is the least integer, as it is the least step there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._tvm import at_step, has_features, structural_map, tirx, tvm
from .rounding import Steps
from .vector_math import Expr, shared

_MOST = 4  # vectors of 32 bits in one of bytes


@dataclass(frozen=True)
class _Packs:
    """The instructions of an extension, for so many lanes of 32 bits."""

    lanes: int
    feature: str
    words: str
    unsigned: str
    signed: str


_WIDEST_FIRST = (
    _Packs(
        16,
        "avx512bw",
        "llvm.x86.avx512.packssdw.512",
        "llvm.x86.avx512.packuswb.512",
        "llvm.x86.avx512.packsswb.512",
    ),
    _Packs(
        8,
        "avx2",
        "llvm.x86.avx2.packssdw",
        "llvm.x86.avx2.packuswb",
        "llvm.x86.avx2.packsswb",
    ),
)


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.BytePacks")
def byte_packs(func: Any, _mod: Any, _context: Any) -> Any:
    """The function, its bytes that were rounded narrowed as many as a register holds at once.

    Its loops over lanes are vectors already, others are not yet written out.
    """
    target = func.attrs.get("target") if func.attrs else None
    if target is None or target.kind.name != "llvm":
        return func
    has = [one for one in _WIDEST_FIRST if has_features(str(target), (one.feature,))]
    if not has:
        return func
    narrow = [
        (tirx.For, lambda loop: _loop(loop, has[0])),
        (tirx.Cast, lambda cast: _cast(cast, has[0])),
    ]
    return func.with_body(structural_map(func.body, narrow))


@dataclass(frozen=True)
class _Narrowed:
    """Bytes of a type that were rounded. high: of the numbers; least: of the bytes."""

    value: Expr
    zero: int
    high: int
    least: int
    kind: str

    @classmethod
    def of(cls, cast: Expr) -> _Narrowed | None:
        """What a vector of bytes is narrowed from; None where it is of anything else."""
        if not isinstance(cast, tirx.Cast) or cast.ty.dtype.with_lanes(1).itemsize != 1:
            return None
        steps, kind = Steps.of(cast.value), str(cast.ty.dtype.with_lanes(1))
        if steps is None:
            return None
        return cls(steps.value, steps.more, steps.high, steps.low + steps.more, kind)

    def nearest(self, value: Expr) -> Expr:
        """The whole numbers nearest to some, of `high` at most; the least of all for NaN."""
        lanes = value.ty.dtype.lanes
        high = tirx.Broadcast(tirx.const(float(self.high), "float32"), lanes)
        held = shared(value, lambda x: tirx.Select(high < x, high, x))
        name = f"llvm.lrint.v{lanes}i32.v{lanes}f32"
        return tirx.call_llvm_pure_intrin(f"int32x{lanes}", name, held)

    def packed(self, vectors: list[Expr], packs: _Packs) -> Expr:
        """Two to four vectors of whole numbers as one of bytes."""
        halves = [self._words(vectors[at : at + 2], packs) for at in range(0, len(vectors), 2)]
        name = packs.unsigned if self.kind == "uint8" else packs.signed

        def pair(left: Expr, right: Expr) -> Expr:
            kind = f"{self.kind}x{_MOST * packs.lanes}"
            made = tirx.call_llvm_pure_intrin(kind, name, left, right)
            return _ordered(made, len(vectors), packs.lanes)

        return pair(*halves) if len(halves) == 2 else shared(halves[0], lambda one: pair(one, one))

    def _words(self, pair: list[Expr], packs: _Packs) -> Expr:
        """One or two vectors of whole numbers as one of 16 bits, with `zero` more."""
        kind, lanes = f"int16x{2 * packs.lanes}", 2 * packs.lanes

        def both(left: Expr, right: Expr) -> Expr:
            return tirx.call_llvm_pure_intrin(kind, packs.words, left, right)

        words = both(*pair) if len(pair) == 2 else shared(pair[0], lambda one: both(one, one))
        if self.zero:
            more = tirx.Broadcast(tirx.const(self.zero, "int16"), lanes)
            words = tirx.call_llvm_pure_intrin(kind, "llvm.sadd.sat", words, more)
        if self.least > (-128 if self.kind == "int8" else 0):
            least = tirx.const(self.least, "int16")
            words = tirx.Max(words, tirx.Broadcast(least, lanes))
        return words


def _loop(loop: Any, packs: _Packs) -> Any:
    """An unrolled loop of stores of whole vectors, which are packed together.

    Those that stand behind each other are stored as wider ones.
    """
    store, count = loop.body, getattr(loop.extent, "value", 0)
    if loop.kind != tirx.ForKind.UNROLLED or not isinstance(store, tirx.BufferStore) or count < 2:
        return loop
    place, steps = store.indices[-1], _Narrowed.of(store.value)
    if steps is None or not _is_row(place, packs.lanes) or len(store.indices) > 1:
        return loop

    def at(expr: Expr, step: int) -> Expr:
        return at_step(expr, loop, step)

    apart = tvm.sym.Analyzer().simplify(at(place.base, 1) - at(place.base, 0))
    beside = isinstance(apart, tirx.IntImm) and int(apart.value) == packs.lanes
    made = []
    for first in range(0, count, _MOST):
        group = range(first, min(first + _MOST, count))
        rows = [[tirx.Ramp(at(place.base, n), place.stride, packs.lanes)] for n in group]
        if len(group) == 1:
            made.append(tirx.BufferStore(store.buffer, at(store.value, first), rows[0]))
            continue
        value = steps.packed([steps.nearest(at(steps.value, n)) for n in group], packs)
        if beside:
            wide = tirx.Ramp(rows[0][0].base, place.stride, packs.lanes * len(group))
            made.append(tirx.BufferStore(store.buffer, value, [wide]))
        else:
            made += _apart(store.buffer, value, rows, packs.lanes)
    return tirx.SeqStmt(made) if len(made) > 1 else made[0]


def _apart(buffer: Any, value: Expr, rows: list[list[Any]], lanes: int) -> list[Any]:
    """The statements that store a vector of bytes by parts, each in a row of its own."""
    packed = tirx.Var("packed", value.ty.dtype)
    parts = [_lanes(packed, list(range(n * lanes, (n + 1) * lanes))) for n in range(len(rows))]
    stores = [tirx.BufferStore(buffer, *one) for one in zip(parts, rows, strict=True)]
    return [tirx.Bind(packed, value), *stores]


def _cast(cast: Expr, packs: _Packs) -> Expr:
    """More bytes than a vector of 32 bits has lanes, if they were rounded."""
    count, rest = divmod(cast.ty.dtype.lanes, packs.lanes)
    steps = _Narrowed.of(cast) if 1 < count <= _MOST and not rest else None
    if steps is None:
        return cast

    def parts(whole: Expr) -> Expr:
        places = [range(at * packs.lanes, (at + 1) * packs.lanes) for at in range(count)]
        return steps.packed([_lanes(whole, list(one)) for one in places], packs)

    return shared(steps.nearest(steps.value), parts)


def _ordered(packed: Expr, count: int, lanes: int) -> Expr:
    """The bytes of the first vectors of four, of which each 16 bytes have a part of each."""
    parts = lanes // _MOST
    order = [_MOST * part + vector for vector in range(count) for part in range(parts)]
    kind = str(packed.ty.dtype.with_lanes(1))
    fours = tirx.reinterpret(f"int32x{lanes}", packed)
    return tirx.reinterpret(f"{kind}x{lanes * count}", _lanes(fours, order))


def _lanes(vector: Expr, places: list[int]) -> Expr:
    return tirx.Shuffle([vector], [tirx.const(at, "int32") for at in places])


def _is_row(place: Any, lanes: int) -> bool:
    """Whether an index is of so many elements that follow one another."""
    return isinstance(place, tirx.Ramp) and int(place.stride) == 1 and int(place.lanes) == lanes
