"""Four steps of a sum of bytes at once, as processors add them up: a dot product in each lane.

    for v: for i in range(4) (marked): for lane: acc[v, lane] += x[k + i] * w[.., lane, i]
    -->
    x4 = x[k .. k + 3] for all lanes        four unsigned bytes, as one number of 32 bits
    acc[v] = dot(acc[v], x4, w[v])          one instruction with VNNI, `vpdpbusd`

Without it, bytes are widened to 16 bits, those at even and at odd places apart, of which AVX2 and
AVX-512 multiply pairs and add them up in 32 bits (`vpmaddwd`): no sum saturates. What is neither,
or has no vectors of a size that these take, stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._lazy_tvm import has_features, op_name, structural_map, tirx, tvm, tvm_target, uses
from ..system.checks import flag
from . import Mark, Place
from .row_vectors import steps_by_one

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


def is_one_instruction(target: Target, lanes: int) -> bool:
    """Whether a processor sums up four products in each of so many lanes by one instruction."""
    return target.gpu is None and bool(_of(tvm_target(target), lanes, _VNNI, _AVX_VNNI))


def has_dot(target: Target, lanes: int) -> bool:
    """Whether bytes of so many lanes are summed up by fours faster than one by one."""
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
    sums = _Sums.of(loop)
    if sums is None:
        return loop
    if name := _of(target, sums.lanes, _VNNI, _AVX_VNNI):
        return sums.in_one(name)
    name = _of(target, sums.lanes, _PAIRS)
    return sums.by_pairs(name) if name else loop


@dataclass(frozen=True)
class _Sums:
    """What a marked loop adds up: a store of sums, of four bytes of a row and of each lane's four.

    row: the four bytes for all lanes, as one vector of int32. weights: the lanes' bytes.
    """

    store: Any
    row: Any
    weights: Any
    lanes: int

    @classmethod
    def of(cls, loop: Any) -> _Sums | None:
        """The sums of a loop; None where it has another form."""
        store = loop.body
        value = getattr(store, "value", None)
        if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
            return None
        factors = [_Bytes.of(one) for one in (value.b.a, value.b.b)]
        found = {one.kind: one for one in factors if one is not None}
        if set(found) != {"uint8", "int8"} or found["int8"].inside is not None:
            return None
        row, weights = found["uint8"], found["int8"].load.indices[0]
        apart = isinstance(weights, tirx.Ramp) and int(weights.stride) == STEPS
        if not apart or isinstance(row.load.indices[0], tirx.Ramp):
            return None
        lanes = int(weights.lanes)
        steps = (row.load.indices[0], weights.base)
        if row.depends_on(loop.loop_var) or not all(steps_by_one(n, loop.loop_var) for n in steps):
            return None
        return cls(
            store,
            tirx.Broadcast(row.four(loop), lanes),
            _load(found["int8"].load.source, _first(weights.base, loop), STEPS * lanes),
            lanes,
        )

    def in_one(self, name: str) -> Any:
        """The sums by an instruction for all four."""
        row = tirx.reinterpret(f"uint8x{STEPS * self.lanes}", self.row)
        return self._stored(
            tirx.call_llvm_pure_intrin(f"int32x{self.lanes}", name, self._before, row, self.weights)
        )

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
        return str(self.load.source.dtype)

    def depends_on(self, var: Any) -> bool:
        """Whether a variable decides if they are read, or what stands for them."""
        return self.inside is not None and (uses(self.inside, var) or uses(self.border, var))

    def four(self, loop: Any) -> Any:
        """Those of the four steps of a loop as one number of 32 bits."""
        found = _load(self.load.source, _first(self.load.indices[0], loop), STEPS)
        read = tirx.reinterpret("int32", found)
        if self.inside is None:
            return read
        border = tirx.reinterpret("int32", tirx.Broadcast(self.border, STEPS))
        return tirx.if_then_else(self.inside, read, border)


def _first(index: Any, loop: Any) -> Any:
    """An index at the first step of a loop."""
    put = lambda var: loop.min if var.same_as(loop.loop_var) else var  # noqa: E731
    return structural_map(index, (tirx.Var, put))


def _load(buffer: Any, start: Any, count: int) -> Any:
    return tirx.BufferLoad(buffer, [tirx.Ramp(start, tirx.const(1, start.ty.dtype), count)])


MARK = Mark(
    {DOT: flag}, Place.VECTORS, dots, verbs=("has_dot", "is_one_instruction", "summed_by_fours")
)
