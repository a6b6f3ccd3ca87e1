"""Look-ups of a vector of bytes in a table of 256 by instructions that look up all of them.

    table[v]   -->   v < 128 ? permuted(table[0:128], v) : permuted(table[128:256], v)

AVX-512 VBMI finds 64 bytes in a table of 128, which fills two registers (`vpermi2b`), and takes
the last seven bits of each place. Elsewhere TVM takes the places apart, and loads byte after byte.
"""

from __future__ import annotations

from typing import Any

from ..._tvm import has_features, structural_map, tirx, tvm
from .vector_math import shared

_PERMUTED = "llvm.x86.avx512.vpermi2var.qi.512"
_NEEDED = ("avx512vbmi",)
# Bytes of a register, and of a table.
_WIDTH, _PLACES = 64, 256


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.ByteTables")
def byte_tables(func: Any, _mod: Any, _context: Any) -> Any:
    """The function, what it looks up in tables of bytes found a register at a time."""
    target = func.attrs.get("target") if func.attrs else None
    if target is None or target.kind.name != "llvm" or not has_features(str(target), _NEEDED):
        return func
    return func.with_body(structural_map(func.body, (tvm.ir.TensorLoad, _looked_up)))


def _looked_up(load: Any) -> Any:
    """A load of bytes at places that are bytes; any other one as it is."""
    table, places = load.source, load.indices[-1]
    if isinstance(places, tirx.Cast):  # an index has 32 bits
        places = places.value
    kind, lanes = str(places.ty.dtype.with_lanes(1)), places.ty.dtype.lanes
    is_table = len(load.indices) == 1 and [str(n) for n in table.shape] == [str(_PLACES)]
    of_bytes = table.dtype.itemsize == 1 and kind == "uint8"
    if not (is_table and of_bytes and 1 < lanes <= _WIDTH and _WIDTH % lanes == 0):
        return load
    filled = shared(places, lambda own: _lanes([own] * (_WIDTH // lanes), _WIDTH))
    return _lanes([shared(filled, lambda wide: _found(table, wide))], lanes)


def _found(table: Any, places: Any) -> Any:
    """What stands in a table at as many places as fill a register."""
    low, high = (_permuted(table, first, places) for first in (0, _PLACES // 2))
    half = tirx.Broadcast(tirx.const(_PLACES // 2, "uint8"), _WIDTH)
    return tirx.Select(places < half, low, high)


def _permuted(table: Any, first: int, places: Any) -> Any:
    """What stands at places in the half of a table that begins at `first`."""
    left, right = (
        tirx.BufferLoad(table, [tirx.Ramp(tirx.const(at, "int32"), tirx.const(1, "int32"), _WIDTH)])
        for at in (first, first + _WIDTH)
    )
    kind = str(table.dtype.with_lanes(_WIDTH))
    return tirx.call_llvm_pure_intrin(kind, _PERMUTED, left, places, right)


def _lanes(vectors: list[Any], count: int) -> Any:
    """The first lanes of vectors that stand behind each other."""
    return tirx.Shuffle(vectors, [tirx.const(at, "int32") for at in range(count)])
