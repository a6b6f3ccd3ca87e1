"""Four steps of a sum of bytes become one instruction: a dot product in each lane.

    for v: for i in range(4) (marked): for lane: acc[v, lane] += x[k + i] * w[.., lane, i]
    -->
    x4 = x[k .. k + 3] for all lanes        four unsigned bytes, as one number of 32 bits
    acc[v] = dot(acc[v], x4, w[v])          one instruction with VNNI, `vpdpbusd`

In a depthwise convolution each lane has its own column. The four bytes then come from four lines,
which are interleaved first:

    for i in range(4) (marked): for lane: acc[v, lane] += x[y + i, lane] * w[.., lane, i]
    -->
    acc[v] = dot(acc[v], (x[y, 0], x[y + 1, 0], x[y + 2, 0], x[y + 3, 0], x[y, 1], ..), w[v])

Without VNNI, a row's bytes have been widened to 16 bits. x86 multiplies pairs of these and adds
them up in 32 bits (`vpmaddwd`), two steps at once, and no sum saturates. Weights are widened when
they are loaded, once for all rows of a tile:

    x2 = x[k], x[k + 1] for all lanes
    acc[v] += pairs added up of (x2 * int16(w[v]))

AArch64 multiplies signed bytes only, eight at a time, to 16 bits. Two such products can be added in
16 bits as long as no weight is -128. Rows and weights are both signed, and weights lie in pairs:

    low  = x[k], x[k + 1] for all lanes      w[.., lane, 0 .. 1]
    high = x[k + 2], x[k + 3] for all lanes  w[.., lane, 2 .. 3]
    acc[v] += pairs added up of (low * w_low + high * w_high)     smull, smlal2, sadalp

The last columns may be fewer than a vector has lanes. They use some lanes of one, and the others
multiply whatever lies behind those columns in their panel. Loops of other forms stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._lazy_tvm import at_step, has_features, op_name, structural_map, tirx, tvm, tvm_target, uses
from ..system.checks import flag
from ..system.host import architecture
from . import Mark, Place

if TYPE_CHECKING:
    from ..target import Target

# Annotation of a loop over the steps, around one over lanes.
DOT = "ansor.dot"
# Steps of bytes that one instruction adds up.
STEPS = 4
# Steps of 16-bit numbers that one instruction adds up.
PAIR = 2
# For a number of 32-bit lanes, the features that an instruction needs, and LLVM's name of it.
Table = dict[int, tuple[tuple[str, ...], str]]
_ONE = "llvm.x86.avx512.vpdpbusd"
_VNNI: Table = {
    16: (("avx512vnni",), f"{_ONE}.512"),
    8: (("avx512vnni", "avx512vl"), f"{_ONE}.256"),
    4: (("avx512vnni", "avx512vl"), f"{_ONE}.128"),
}
_AVX_VNNI: Table = {8: (("avxvnni",), f"{_ONE}.256"), 4: (("avxvnni",), f"{_ONE}.128")}
PAIRS: Table = {
    16: (("avx512bw",), "llvm.x86.avx512.pmaddw.d.512"),
    8: (("avx2",), "llvm.x86.avx2.pmadd.wd"),
    4: (("sse4.1",), "llvm.x86.sse2.pmadd.wd"),
}
# AArch64's instruction for eight products of 16 bits.
PRODUCTS = "llvm.aarch64.neon.smull"
# AArch64's instruction for the sums of pairs of these, in 32 bits.
_PAIRED = "llvm.aarch64.neon.saddlp"
# The lanes of such a vector of sums.
_PAIRED_LANES = 4
# Layouts of weights: how many elements apart those of two lanes are, and where those of each step
# lie.
_FOURS, _TWOS, _TWICE_PAIRS = (STEPS, (0, 1, 2, 3)), (PAIR, (0, 1)), (2, (0, 1, 8, 9))


def multiplies_signed(target: Target) -> bool:
    """Whether a processor multiplies signed bytes by weights other than -128."""
    return target.gpu is None and is_signed(tvm_target(target))


def current_is_signed() -> bool:
    """Whether TVM's current target multiplies signed bytes by weights other than -128."""
    return _current_rows() == "int8"


def is_signed(target: Any) -> bool:
    """Whether a TVM target multiplies signed bytes."""
    return architecture(str(target.attrs.get("mtriple") or "")) == "aarch64"


def current_has_dot() -> bool:
    """Whether TVM's current target sums up four products of a lane by one instruction."""
    return _current_rows() == "uint8"


def current_widens() -> bool:
    """Whether TVM's current target multiplies 16-bit pairs, and not bytes."""
    return _current_rows() == "int16"


def _current_rows() -> str:
    target = tvm.target.Target.current(allow_none=True)
    return "" if target is None or target.kind.name != "llvm" else _rows(target)


def multiplied_rows(target: Target) -> str:
    """The type of rows that a processor's dot product multiplies by signed bytes; "" for none."""
    return "" if target.gpu is not None else _rows(tvm_target(target))


def _rows(target: Any) -> str:
    if is_signed(target):
        return "int8"
    if any(named(target, lanes, _VNNI, _AVX_VNNI) for lanes in _VNNI):
        return "uint8"
    return "int16" if any(named(target, lanes, PAIRS) for lanes in PAIRS) else ""


def steps_at_once(target: Target, lanes: int, kind: str | None = None) -> int:
    """How many steps an instruction sums up in each of this many lanes; 0 without one.

    kind: the type of rows; None for the one that the processor multiplies fastest.
    """
    kind = multiplied_rows(target) if kind is None else kind
    if kind == "int8":
        return STEPS if lanes == _PAIRED_LANES else 0
    if kind == "uint8":
        return STEPS if named(tvm_target(target), lanes, _VNNI, _AVX_VNNI) else 0
    return PAIR if kind and named(tvm_target(target), lanes, PAIRS) else 0


def instruction(target: Any, lanes: int) -> str:
    """LLVM's name of the instruction for four products in each of this many lanes; "" for none."""
    return named(target, lanes, _VNNI, _AVX_VNNI)


def named(target: Any, lanes: int, *tables: Table) -> str:
    """LLVM's name of the first of these instructions that a processor has; "" for none."""
    found = (table[lanes] for table in tables if lanes in table)
    return next((name for needed, name in found if has_features(str(target), needed)), "")


def summed_at_once(sch: Any, loop: Any) -> None:
    """Let lowering add up all steps of a loop by one instruction. It is around one over lanes."""
    sch.annotate(loop, DOT, True)


def dots(func: Any) -> Any:
    """The function with marked loops as dot products. Loops over lanes must be vectors already."""
    target = func.attrs["target"]
    if target.kind.name != "llvm":
        return func
    return func.with_body(structural_map(func.body, (tirx.For, lambda one: _added_up(one, target))))


def _added_up(loop: Any, target: Any) -> Any:
    steps = getattr(loop.extent, "value", 0)
    fours = ("int8", _TWICE_PAIRS) if is_signed(target) else ("uint8", _FOURS)
    forms = {PAIR: ("int16", _TWOS), STEPS: fours}
    if DOT not in (loop.annotations or {}) or steps not in forms:
        return loop
    sums = _Sums.of(loop, *forms[steps])
    found = None if sums is None else _instructed(sums, target)
    return loop if found is None else found


def _instructed(sums: _Sums, target: Any) -> Any | None:
    """The store with the instruction for such rows; None where there is none for these lanes."""
    if sums.given.kind == "int8":
        return sums.stored(sums.by_signed_pairs()) if sums.lanes == _PAIRED_LANES else None
    tables = (PAIRS,) if sums.given.kind == "int16" else (_VNNI, _AVX_VNNI)
    name = named(target, sums.lanes, *tables)
    return sums.stored(sums.by(name)) if name else _of_fewer(sums, target, tables)


def _of_fewer(sums: _Sums, target: Any, tables: tuple[Table, ...]) -> Any | None:
    """The sums of the last columns, as some lanes of the smallest vector with an instruction.

    None where there is no such vector, or its other lanes would read beyond the panel.
    """
    for lanes in sorted(tables[0]):
        name = named(target, lanes, *tables)
        wide = sums.widened(lanes) if name and lanes > sums.lanes else None
        if wide is not None:
            return sums.stored(sums.before + _first(wide.by(name), sums.lanes))
    return None


@dataclass(frozen=True)
class _Sums:
    """The sums of a marked loop: products of a row's steps and of each lane's weights.

    before: the sums so far. given: the row's elements. factors: the weights.
    """

    loop: Any
    before: Any
    given: Factor
    factors: Factor
    lanes: int

    @classmethod
    def of(cls, loop: Any, kind: str, packed: tuple[int, tuple[int, ...]]) -> _Sums | None:
        """The sums of a loop; None where it has another form.

        kind: the type of the row. packed: the layout of weights, such as `_FOURS`.
        """
        value = getattr(loop.body, "value", None)
        if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
            return None
        factors = [one for one in map(Factor.of, (value.b.a, value.b.b)) if one is not None]
        factors.sort(key=lambda one: (one.is_packed(loop, *packed), one.load.ty.dtype.lanes))
        if len(factors) < 2 or not factors[1].is_packed(loop, *packed):
            return None
        given, weights = factors
        lanes = int(weights.load.ty.dtype.lanes)
        fits = given.kind == kind and given.has_rows(loop, lanes)
        return cls(loop, value.a, given, weights, lanes) if fits else None

    def widened(self, lanes: int) -> _Sums | None:
        """The same steps with more lanes, and sums that start at zero. The last lanes are not used.

        None where these lanes cannot be read.
        """
        if self.given.load.ty.dtype.lanes > 1 or not self.factors.has_behind(self.loop, lanes):
            return None
        zeros = tirx.Broadcast(tirx.const(0, "int32"), lanes)
        return replace(self, before=zeros, lanes=lanes)

    @property
    def row(self) -> Any:
        """The row's elements of all steps, for each lane, as one vector."""
        return self.given.rows(self.loop, self.lanes)

    @property
    def weights(self) -> Any:
        """The weights of all steps and lanes, as one vector."""
        return self.factors.packed(self.loop, self.lanes)

    def by(self, name: str) -> Any:
        """The sums by one instruction, for all steps or for pairs of 16 bits."""
        kind = f"int32x{self.lanes}"
        if self.given.kind != "int16":
            given = (self.before, self.row, self.weights)
            return tirx.call_llvm_pure_intrin(kind, name, *given)
        weights = tirx.Cast(f"int16x{PAIR * self.lanes}", self.weights)
        return self.before + tirx.call_llvm_pure_intrin(kind, name, self.row, weights)

    def by_signed_pairs(self) -> Any:
        """The sums by 16-bit products; two of them are added up before they are widened."""
        pairs = tirx.reinterpret("int16x8", self.row)
        places = [tirx.const(at // 4, "int32") for at in range(8)]
        row = tirx.reinterpret("int8x16", tirx.Shuffle([pairs], places))
        return self.before + signed_pairs(row, self.weights)

    def stored(self, value: Any) -> Any:
        """The loop's store, with another value."""
        store = self.loop.body
        return tirx.BufferStore(store.buffer, value, store.indices)


@dataclass(frozen=True)
class Factor:
    """A factor of a product: the elements that a load reads, or a border's value outside an image.

    inside: the condition under which elements are read; None where they always are.
    """

    load: Any
    inside: Any = None
    border: Any = None

    @classmethod
    def of(cls, factor: Any) -> Factor | None:
        """The factor that an expression reads; None where it is computed."""
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
        """The type of the elements that are read."""
        return str(self.load.source.dtype.with_lanes(1))

    def is_packed(self, loop: Any, apart: int, places: tuple[int, ...]) -> bool:
        """Whether these are weights with lanes `apart` elements apart and steps at these places."""
        index = self.load.indices[0]
        lanes = not isinstance(index, tirx.Ramp) or int(index.stride) == apart
        found = self.kind in ("int8", "int16") and self.inside is None
        return lanes and found and _places(self._base, loop) == places

    def packed(self, loop: Any, lanes: int) -> Any:
        """The weights of a loop's steps, for this many lanes, as one vector."""
        first = at_step(self._base, loop, 0)
        return _load(self.load.source, first, loop.extent.value * lanes)

    def has_behind(self, loop: Any, lanes: int) -> bool:
        """Whether the weights of this many lanes lie within the panel."""
        first = tvm.sym.Analyzer().modular_set(at_step(self._base, loop, 0))
        size = math.prod(int(extent) for extent in self.load.source.shape)
        apart = int(first.coeff) or size
        end = int(first.base) % apart + loop.extent.value * lanes
        return size % apart == 0 and end <= apart

    @property
    def _base(self) -> Any:
        """The first index."""
        index = self.load.indices[0]
        return index.base if isinstance(index, tirx.Ramp) else index

    def has_rows(self, loop: Any, lanes: int) -> bool:
        """Whether a loop's steps read contiguous elements, or a contiguous line for these lanes."""
        index = self.load.indices[0]
        if self._is_one:
            beside = _places(index, loop) == tuple(range(loop.extent.value))
            return beside and not self._depends_on(loop.loop_var)
        beside = not isinstance(index, tirx.Ramp) or int(index.stride) == 1
        return beside and self.kind == "uint8" and self.load.ty.dtype.lanes == lanes

    def rows(self, loop: Any, lanes: int) -> Any:
        """The elements of a loop's steps for each lane, as one vector."""
        return self._word(loop, lanes) if self._is_one else self._lines(loop, lanes)

    @property
    def _is_one(self) -> bool:
        """Whether all lanes read the same element."""
        return bool(self.load.ty.dtype.lanes == 1)

    def _word(self, loop: Any, lanes: int) -> Any:
        """Contiguous elements of 32 bits in all, repeated for all lanes."""
        index, steps = self.load.indices[0], loop.extent.value
        found = _load(self.load.source, at_step(index, loop, 0), steps)
        read = tirx.reinterpret("int32", found)
        if self.inside is not None:
            border = tirx.reinterpret("int32", tirx.Broadcast(self.border, steps))
            read = tirx.if_then_else(self.inside, read, border)
        return tirx.reinterpret(f"{self.kind}x{steps * lanes}", tirx.Broadcast(read, lanes))

    def _depends_on(self, var: Any) -> bool:
        """Whether a variable decides if elements are read, or which border replaces them."""
        return self.inside is not None and (uses(self.inside, var) or uses(self.border, var))

    def _lines(self, loop: Any, lanes: int) -> Any:
        """The elements of four lines, interleaved: each lane has a column of its own."""
        found = [self._line(loop, step, lanes) for step in range(STEPS)]
        order = [line * lanes + lane for lane in range(lanes) for line in range(STEPS)]
        return tirx.Shuffle(found, [tirx.const(one, "int32") for one in order])

    def _line(self, loop: Any, step: int, lanes: int) -> Any:
        """The bytes of all lanes at one step of a loop."""
        read = at_step(self.load, loop, step)
        if self.inside is None:
            return read
        border = (
            self.border if self.border.ty.dtype.lanes > 1 else tirx.Broadcast(self.border, lanes)
        )
        return tirx.if_then_else(at_step(self.inside, loop, step), read, border)


def _places(index: Any, loop: Any) -> tuple[int, ...]:
    """How far an index has moved at each step of a loop; -1 where that is not known."""
    first, simplify = at_step(index, loop, 0), tvm.sym.Analyzer().simplify
    found = [simplify(at_step(index, loop, step) - first) for step in range(loop.extent.value)]
    return tuple(int(one.value) if isinstance(one, tirx.IntImm) else -1 for one in found)


def _first(vector: Any, lanes: int) -> Any:
    """The first lanes of a vector; a single lane as a number."""
    return tirx.Shuffle([vector], [tirx.const(at, "int32") for at in range(lanes)])


def signed_pairs(row: Any, weights: Any) -> Any:
    """Sums of the products of two vectors of sixteen signed bytes, in four lanes (AArch64).

    Products eight bytes apart are added in 16 bits, and pairs of these sums in 32 bits.
    """
    halves = [[_half(one, first) for one in (row, weights)] for first in (0, 8)]
    low, high = (tirx.call_llvm_pure_intrin("int16x8", PRODUCTS, *one) for one in halves)
    return tirx.call_llvm_pure_intrin("int32x4", _PAIRED, low + high)


def _half(vector: Any, first: int) -> Any:
    """Eight bytes of a vector, from `first` on."""
    return tirx.Shuffle([vector], [tirx.const(first + at, "int32") for at in range(8)])


def _load(buffer: Any, start: Any, count: int) -> Any:
    return tirx.BufferLoad(buffer, [tirx.Ramp(start, tirx.const(1, start.ty.dtype), count)])


MARK = Mark({DOT: flag}, Place.VECTORS, dots, verbs=("steps_at_once", "summed_at_once"))
