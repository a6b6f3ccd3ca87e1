"""Look up a vector of bytes in a table of 256 bytes, by instructions that look up all at once.

    table[v]   -->   v < 128 ? permuted(table[0:128], v) : permuted(table[128:256], v)

AVX-512 VBMI looks up 64 bytes in a table of 128, which fills two registers (`vpermi2b`), by the low
seven bits of each index. SSE4, AVX2 and AVX-512 look them up in a table of 16, by the low four bits
(`pshufb`); a byte with its highest bit set finds 0. So each two of the 16 parts of a table are
added up, one for either value of that bit, and the other three bits choose one of eight results,
each bit among half of those that are left:

    f_k = shuffled(table[16 k : 16 k + 16], v) | shuffled(table[16 k + 128 : 16 k + 144], v ^ 128)
    table[v] = chosen(bit 6 of v, chosen(bit 5, chosen(bit 4, f_0, f_1), ..), ..)

AArch64 looks up 16 bytes in a table of 64, which fills four registers (`tbl`), and leaves those
with an index beyond it as they are (`tbx`): four such tables, one after the other.

On other processors TVM splits the vector of indices, and loads byte after byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..._tvm import has_features, structural_map, tirx, tvm
from .vector_math import shared

_PERMUTED = "llvm.x86.avx512.vpermi2var.qi.512"
# Bytes of a table.
_PLACES = 256
# Bytes of the part of a table that `pshufb` looks up in.
_PART = 16
# The bits of an index that choose among the results of two parts each.
_CHOOSING = (4, 5, 6)
# How many registers of a table one instruction of AArch64 looks up in.
_QUARTER = 4


@dataclass(frozen=True)
class _Finding:
    """How a processor's extension looks up a register of bytes.

    features: LLVM's names of the extension. least: the number of bytes from which it is faster than
    loading byte after byte. width: bytes of a register. found: the expression that looks up a
    vector of indices in a table.
    """

    features: tuple[str, ...]
    least: int
    width: int
    found: Callable[[Any, Any], Any]


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.ByteTables")
def byte_tables(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with look-ups in tables of bytes by whole registers."""
    target = func.attrs.get("target") if func.attrs else None
    if target is None or target.kind.name != "llvm":
        return func
    has = [one for one in _BEST_FIRST if has_features(str(target), one.features)]
    if not has:
        return func
    looked_up = (tvm.ir.TensorLoad, lambda load: _looked_up(load, has))
    return func.with_body(structural_map(func.body, looked_up))


def _looked_up(load: Any, ways: list[_Finding]) -> Any:
    """The look-up for a load of bytes at indices that are bytes; any other load as it is."""
    table = load.source
    if table.dtype.itemsize != 1 or len(load.indices) != 1:  # most loads: the rest here is slow
        return load
    (places,) = load.indices
    if isinstance(places, tirx.Cast):  # an index has 32 bits
        places = places.value
    kind, lanes = str(places.ty.dtype.with_lanes(1)), places.ty.dtype.lanes
    is_table = [str(n) for n in table.shape] == [str(_PLACES)]
    fit = [one for one in ways if one.least <= lanes <= one.width]
    if not (is_table and kind == "uint8" and fit):
        return load
    way, *_ = fit
    filled = shared(places, lambda own: _lanes([own] * -(-way.width // lanes), way.width))
    return _lanes([shared(filled, lambda wide: way.found(table, wide))], lanes)


def _permuted_halves(table: Any, places: Any) -> Any:
    low, high = (_permuted(table, first, places) for first in (0, _PLACES // 2))
    half = tirx.Broadcast(tirx.const(_PLACES // 2, "uint8"), places.ty.dtype.lanes)
    return tirx.Select(places < half, low, high)


def _permuted(table: Any, first: int, places: Any) -> Any:
    """The elements at these indices in the half of a table that begins at `first`."""
    width = int(places.ty.dtype.lanes)
    left, right = (_part(table, at, width) for at in (first, first + width))
    kind = str(table.dtype.with_lanes(width))
    return tirx.call_llvm_pure_intrin(kind, _PERMUTED, left, places, right)


def _part(table: Any, first: int, count: int) -> Any:
    ramp = tirx.Ramp(tirx.const(first, "int32"), tirx.const(1, "int32"), count)
    return tirx.BufferLoad(table, [ramp])


def _shuffled_parts(shuffle: str) -> Callable[[Any, Any], Any]:
    """The look-up by an instruction that shuffles 16 bytes. shuffle: LLVM's name of it."""

    def found(table: Any, places: Any) -> Any:
        half = tirx.Broadcast(tirx.const(_PLACES // 2, "uint8"), places.ty.dtype.lanes)
        return shared(places ^ half, lambda turned: _chosen(table, places, turned, shuffle))

    return found


def _chosen(table: Any, places: Any, turned: Any, shuffle: str) -> Any:
    """The look-up in each part of a table, and the choice among the results.

    turned: the indices with their highest bit flipped.
    """
    lanes = int(places.ty.dtype.lanes)
    kind = str(table.dtype.with_lanes(lanes))

    def found(first: int, own: Any) -> Any:
        part = _lanes([_part(table, first, _PART)] * (lanes // _PART), lanes)
        return tirx.call_llvm_pure_intrin(kind, shuffle, part, own)

    half = _PLACES // 2
    firsts = range(0, half, _PART)
    parts = [found(first, places) | found(first + half, turned) for first in firsts]
    for bit in _CHOOSING:
        set_ = _is_set(places, bit)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [tirx.Select(set_, right, left) for left, right in pairs]
    return parts[0]


def _is_set(places: Any, bit: int) -> Any:
    """Whether a bit is set, moved to the sign: instructions that select read the sign bit."""
    lanes = int(places.ty.dtype.lanes)
    words = tirx.reinterpret(f"int16x{lanes // 2}", places)
    left = tirx.Broadcast(tirx.const(7 - bit, "int16"), lanes // 2)
    signs = tirx.reinterpret(f"int8x{lanes}", tirx.shift_left(words, left))
    return signs < tirx.Broadcast(tirx.const(0, "int8"), lanes)


def _lanes(vectors: list[Any], count: int) -> Any:
    """The first lanes of the concatenation of vectors."""
    return tirx.Shuffle(vectors, [tirx.const(at, "int32") for at in range(count)])


def _quarters(table: Any, places: Any) -> Any:
    """The elements at these indices, looked up in four registers of the table after the other."""
    lanes, found = int(places.ty.dtype.lanes), None
    kind, quarter = str(table.dtype.with_lanes(lanes)), _QUARTER * lanes
    for first in range(0, _PLACES, quarter):
        parts = [_part(table, first + at * lanes, lanes) for at in range(_QUARTER)]
        own = places - tirx.Broadcast(tirx.const(first, "uint8"), lanes) if first else places
        name = "tbl4" if found is None else "tbx4"
        given = [one for one in (found, *parts, own) if one is not None]
        found = tirx.call_llvm_pure_intrin(kind, f"llvm.aarch64.neon.{name}", *given)
    return found


# In order of preference. Wider versions of an instruction come after narrower ones.
_BEST_FIRST = (
    _Finding(("avx512vbmi",), 2, 64, _permuted_halves),
    _Finding(("sse4.1",), 12, 16, _shuffled_parts("llvm.x86.ssse3.pshuf.b.128")),
    _Finding(("avx2",), 12, 32, _shuffled_parts("llvm.x86.avx2.pshuf.b")),
    _Finding(("avx512bw",), 12, 64, _shuffled_parts("llvm.x86.avx512.pshuf.b.512")),
    _Finding(("neon",), 4, 16, _quarters),
)
