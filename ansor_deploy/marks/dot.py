"""Four steps of a sum of bytes at once, as processors add them up: a dot product in each lane.

    for v: for i in range(4) (marked): for lane: acc[v, lane] += x[k + i] * w[.., lane, i]
    -->
    x4 = x[k .. k + 3] for all lanes        four unsigned bytes, as one number of 32 bits
    acc[v] = dot(acc[v], x4, w[v])          one instruction with VNNI, `vpdpbusd`

Where each lane has a column of its own, as in a depthwise convolution, the four bytes are of four
lines, which are put between each other first:

    for i in range(4) (marked): for lane: acc[v, lane] += x[y + i, lane] * w[.., lane, i]
    -->
    acc[v] = dot(acc[v], (x[y, 0], x[y + 1, 0], x[y + 2, 0], x[y + 3, 0], x[y, 1], ..), w[v])

Without it, bytes are widened to 16 bits, those at even and at odd places apart, of which AVX2 and
AVX-512 multiply pairs and add them up in 32 bits (`vpmaddwd`): no sum saturates.

AArch64 multiplies signed bytes alone, eight at a time, to 16 bits, in which two products have room
as long as no weight is -128. Both of its rows and weights are signed, and weights lie as pairs:

    low  = x[k], x[k + 1] for all lanes      w[.., lane, 0 .. 1]
    high = x[k + 2], x[k + 3] for all lanes  w[.., lane, 2 .. 3]
    acc[v] += pairs added up of (low * w_low + high * w_high)     smull, smlal2, sadalp

What is none of these, or has no vectors of a size that these take, stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._lazy_tvm import at_step, has_features, op_name, structural_map, tirx, tvm, tvm_target, uses
from ..system.checks import flag
from ..system.host import architecture
from . import Mark, Place

if TYPE_CHECKING:
    from ..target import Target

# Of a loop over the four steps, around one over lanes.
DOT = "ansor.dot"
# Steps that are added up at once.
STEPS = 4
# LLVM's instructions for so many lanes of 32 bits, and the features that they need.
_Table = dict[int, tuple[tuple[str, ...], str]]
_ONE = "llvm.x86.avx512.vpdpbusd"
_VNNI: _Table = {
    16: (("avx512vnni",), f"{_ONE}.512"),
    8: (("avx512vnni", "avx512vl"), f"{_ONE}.256"),
    4: (("avx512vnni", "avx512vl"), f"{_ONE}.128"),
}
_AVX_VNNI: _Table = {8: (("avxvnni",), f"{_ONE}.256"), 4: (("avxvnni",), f"{_ONE}.128")}
_PAIRS: _Table = {
    16: (("avx512bw",), "llvm.x86.avx512.pmaddw.d.512"),
    8: (("avx2",), "llvm.x86.avx2.pmadd.wd"),
    4: (("avx2",), "llvm.x86.sse2.pmadd.wd"),
}
# AArch64's eight products of 16 bits, the sums of pairs of them, and the lanes that these fill.
_PRODUCTS, _PAIRED, _PAIRED_LANES = "llvm.aarch64.neon.smull", "llvm.aarch64.neon.saddlp", 4
# How many bytes the weights of lanes are apart, and where those of four steps lie.
_FOURS, _TWICE_PAIRS = (STEPS, (0, 1, 2, 3)), (2, (0, 1, 8, 9))


def multiplies_signed(target: Target) -> bool:
    """Whether a processor multiplies signed bytes, by weights but -128."""
    return target.gpu is None and _is_signed(tvm_target(target))


def current_is_signed() -> bool:
    """Whether the target that TVM is at multiplies signed bytes, by weights but -128."""
    target = tvm.target.Target.current(allow_none=True)
    return target is not None and target.kind.name == "llvm" and _is_signed(target)


def _is_signed(target: Any) -> bool:
    return architecture(str(target.attrs.get("mtriple") or "")) == "aarch64"


def is_one_instruction(target: Target, lanes: int) -> bool:
    """Whether a processor sums up four products in each of so many lanes by one instruction."""
    return target.gpu is None and bool(_of(tvm_target(target), lanes, _VNNI, _AVX_VNNI))


def current_has_dot() -> bool:
    """Whether the target that TVM is at sums up four products in some vector by one instruction."""
    target = tvm.target.Target.current(allow_none=True)
    if target is None or target.kind.name != "llvm":
        return False
    return any(_of(target, lanes, _VNNI, _AVX_VNNI) for lanes in _VNNI)


def has_dot(target: Target, lanes: int) -> bool:
    """Whether bytes of so many lanes are summed up by fours faster than one by one."""
    if multiplies_signed(target):
        return lanes == _PAIRED_LANES
    return target.gpu is None and bool(_of(tvm_target(target), lanes, _VNNI, _AVX_VNNI, _PAIRS))


def _of(target: Any, lanes: int, *tables: _Table) -> str:
    """LLVM's name of the first instruction that a processor has; empty where it has none."""
    found = (table[lanes] for table in tables if lanes in table)
    return next((name for needed, name in found if has_features(str(target), needed)), "")


def summed_by_fours(sch: Any, loop: Any) -> None:
    """Let lowering add up the four steps of a loop, which is around one over lanes, at once."""
    sch.annotate(loop, DOT, True)


def dots(func: Any) -> Any:
    """The function, its marked loops as dot products; its loops over lanes are vectors already."""
    target = func.attrs["target"]
    if target.kind.name != "llvm":
        return func
    return func.with_body(structural_map(func.body, (tirx.For, lambda one: _added_up(one, target))))


def _added_up(loop: Any, target: Any) -> Any:
    if DOT not in (loop.annotations or {}) or getattr(loop.extent, "value", 0) != STEPS:
        return loop
    signed = _is_signed(target)
    sums = _Sums.of(loop, *(("int8", _TWICE_PAIRS) if signed else ("uint8", _FOURS)))
    if sums is None:
        return loop
    if signed:
        return sums.by_signed_pairs() if sums.lanes == _PAIRED_LANES else loop
    if name := _of(target, sums.lanes, _VNNI, _AVX_VNNI):
        return sums.in_one(name)
    name = _of(target, sums.lanes, _PAIRS)
    return sums.by_pairs(name) if name else loop


@dataclass(frozen=True)
class _Sums:
    """What a marked loop adds up: a store of sums, of four bytes of a row and of each lane's four.

    row: the four bytes that each lane multiplies, weights: by which; both as one vector of bytes.
    """

    store: Any
    row: Any
    weights: Any
    lanes: int

    @classmethod
    def of(cls, loop: Any, kind: str, packed: tuple[int, tuple[int, ...]]) -> _Sums | None:
        """The sums of a loop; None where it has another form.

        kind: of the row's bytes. packed: how far apart lanes' weights are, and where each step's.
        """
        store = loop.body
        value = getattr(store, "value", None)
        if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
            return None
        factors = [one for one in map(_Bytes.of, (value.b.a, value.b.b)) if one is not None]
        factors.sort(key=lambda one: one.is_packed(loop, *packed))
        if len(factors) < 2 or not factors[1].is_packed(loop, *packed):
            return None
        given, weights = factors
        if given.kind != kind:
            return None
        index = weights.load.indices[0]
        lanes = int(index.lanes)
        row = given.rows(loop, lanes)
        first = _load(weights.load.source, at_step(index.base, loop, 0), STEPS * lanes)
        return None if row is None else cls(store, row, first, lanes)

    def in_one(self, name: str) -> Any:
        """The sums by an instruction for all four."""
        given = (self._before, self.row, self.weights)
        return self._stored(tirx.call_llvm_pure_intrin(f"int32x{self.lanes}", name, *given))

    def by_pairs(self, name: str) -> Any:
        """The sums by an instruction for pairs of 16 bits: bytes at even places, then odd ones."""
        wide = f"int16x{2 * self.lanes}"
        eight, low = (tirx.Broadcast(tirx.const(n, "int16"), 2 * self.lanes) for n in (8, 255))
        row, weights = (tirx.reinterpret(wide, one) for one in (self.row, self.weights))
        odd = tirx.bitwise_and(tirx.shift_right(row, eight), low)
        pairs = (
            (tirx.bitwise_and(row, low), tirx.shift_right(tirx.shift_left(weights, eight), eight)),
            (odd, tirx.shift_right(weights, eight)),
        )
        total = self._before
        for pair in pairs:
            total = total + tirx.call_llvm_pure_intrin(f"int32x{self.lanes}", name, *pair)
        return self._stored(total)

    def by_signed_pairs(self) -> Any:
        """The sums by products of 16 bits, of which two are added up before they are widened."""
        pairs = tirx.reinterpret("int16x8", self.row)
        places = [tirx.const(at // 4, "int32") for at in range(8)]
        row = tirx.reinterpret("int8x16", tirx.Shuffle([pairs], places))
        halves = [[_half(one, first) for one in (row, self.weights)] for first in (0, 8)]
        low, high = (tirx.call_llvm_pure_intrin("int16x8", _PRODUCTS, *one) for one in halves)
        added = tirx.call_llvm_pure_intrin("int32x4", _PAIRED, low + high)
        return self._stored(self._before + added)

    @property
    def _before(self) -> Any:
        return self.store.value.a

    def _stored(self, value: Any) -> Any:
        return tirx.BufferStore(self.store.buffer, value, self.store.indices)


@dataclass(frozen=True)
class _Bytes:
    """A factor of a product: bytes that are read, or where they lie outside of a border, this one.

    inside: the condition under which they are read; None where they always are.
    """

    load: Any
    inside: Any = None
    border: Any = None

    @classmethod
    def of(cls, factor: Any) -> _Bytes | None:
        """The bytes of a factor; None where it is computed."""
        while isinstance(factor, (tirx.Broadcast, tirx.Cast)):
            factor = factor.value
        if isinstance(factor, tvm.ir.TensorLoad):
            return cls(factor)
        chosen = op_name(factor) == "prim.if_then_else"
        if not chosen or not isinstance(factor.args[1], tvm.ir.TensorLoad):
            return None
        inside, load, border = factor.args
        return cls(load, inside, border)

    @property
    def kind(self) -> str:
        """The type of the bytes."""
        return str(self.load.source.dtype.with_lanes(1))

    def is_packed(self, loop: Any, apart: int, places: tuple[int, ...]) -> bool:
        """Whether they are weights, of lanes so far apart, and of each step at its place."""
        index = self.load.indices[0]
        lanes = isinstance(index, tirx.Ramp) and int(index.stride) == apart
        found = self.kind == "int8" and self.inside is None
        return lanes and found and _places(index.base, loop) == places

    def rows(self, loop: Any, lanes: int) -> Any:
        """Those of the four steps of a loop, as a vector of four for each lane.

        None where they lie in neither of two ways.
        """
        index, var = self.load.indices[0], loop.loop_var
        if self.load.ty.dtype.lanes == 1:
            four = _places(index, loop) == _FOURS[1] and not self._depends_on(var)
            return self._four(loop, lanes) if four else None
        beside = not isinstance(index, tirx.Ramp) or int(index.stride) == 1
        beside = beside and self.kind == "uint8"
        return self._lines(loop, lanes) if beside and self.load.ty.dtype.lanes == lanes else None

    def _four(self, loop: Any, lanes: int) -> Any:
        """Those that lie beside each other, for all lanes."""
        index = self.load.indices[0]
        found = _load(self.load.source, at_step(index, loop, 0), STEPS)
        read = tirx.reinterpret("int32", found)
        if self.inside is not None:
            border = tirx.reinterpret("int32", tirx.Broadcast(self.border, STEPS))
            read = tirx.if_then_else(self.inside, read, border)
        return tirx.reinterpret(f"{self.kind}x{STEPS * lanes}", tirx.Broadcast(read, lanes))

    def _depends_on(self, var: Any) -> bool:
        """Whether a variable decides if they are read, or what stands for them."""
        return self.inside is not None and (uses(self.inside, var) or uses(self.border, var))

    def _lines(self, loop: Any, lanes: int) -> Any:
        """Those of four lines, in which each lane has a column of its own."""
        found = [self._line(loop, step, lanes) for step in range(STEPS)]
        order = [line * lanes + lane for lane in range(lanes) for line in range(STEPS)]
        return tirx.Shuffle(found, [tirx.const(one, "int32") for one in order])

    def _line(self, loop: Any, step: int, lanes: int) -> Any:
        """The bytes of all lanes at a step of a loop."""
        read = at_step(self.load, loop, step)
        if self.inside is None:
            return read
        border = (
            self.border if self.border.ty.dtype.lanes > 1 else tirx.Broadcast(self.border, lanes)
        )
        return tirx.if_then_else(at_step(self.inside, loop, step), read, border)


def _places(index: Any, loop: Any) -> tuple[int, ...]:
    """Where an index is at each step of a loop, from the first; -1 where that is not known."""
    first, simplify = at_step(index, loop, 0), tvm.sym.Analyzer().simplify
    found = [simplify(at_step(index, loop, step) - first) for step in range(STEPS)]
    return tuple(int(one.value) if isinstance(one, tirx.IntImm) else -1 for one in found)


def _half(vector: Any, first: int) -> Any:
    """Eight bytes of a vector."""
    return tirx.Shuffle([vector], [tirx.const(first + at, "int32") for at in range(8)])


def _load(buffer: Any, start: Any, count: int) -> Any:
    return tirx.BufferLoad(buffer, [tirx.Ramp(start, tirx.const(1, start.ty.dtype), count)])


MARK = Mark(
    {DOT: flag}, Place.VECTORS, dots, verbs=("has_dot", "is_one_instruction", "summed_by_fours")
)
