"""Taps of signed bytes in pairs: two products are added in 16 bits before they are widened.

    for t (marked, unrolled): for w (unrolled): acc[w, lanes] += x[w + t, lanes] * k[t, lanes]
    -->
    for two taps t, u: for w: acc[w, lanes] += wide(x[w + t] * k[t] + x[w + u] * k[u])

The products and their sum have 16 bits. AArch64 multiplies and adds eight such lanes by one
instruction (`smull`, `smlal`), and adds sums to four lanes of 32 bits by one (`saddw`). No weight
is -128, so two products fit 16 bits.
"""

from __future__ import annotations

from typing import Any

from .._lazy_tvm import at_step, structural_equal, structural_map, tirx, uses
from ..system.checks import flag
from . import Mark, Place
from .dot import PRODUCTS

# Annotation of the outermost unrolled loop over taps.
TAP_PAIRS = "ansor.tap_pairs"
# How many products of bytes one instruction computes.
_EIGHT = 8


def summed_by_pairs(sch: Any, loop: Any) -> None:
    """Let lowering add up two taps at once. loop: the outermost of the unrolled loops over taps."""
    sch.annotate(loop, TAP_PAIRS, True)


def tap_pairs(func: Any) -> Any:
    """The function with its marked loops unrolled. Loops over lanes must be vectors already."""
    return func.with_body(structural_map(func.body, (tirx.For, _written_out)))


def _written_out(loop: Any) -> Any:
    if TAP_PAIRS not in (loop.annotations or {}):
        return loop
    taps = _taps(loop, _stored(loop))
    pairs = [taps[at : at + 2] for at in range(0, len(taps), 2)]
    written = [_added_up(*pair) for pair in pairs]
    if not written or any(one is None for one in written):
        return loop
    return tirx.SeqStmt(written) if len(written) > 1 else written[0]


def _stored(body: Any) -> Any:
    """The only store in perfectly nested loops and conditions; None where there is none."""
    while isinstance(body, (tirx.For, tirx.IfThenElse)):
        body = body.body if isinstance(body, tirx.For) else body.then_case
    return body if isinstance(body, tirx.BufferStore) else None


def _taps(body: Any, store: Any) -> list[Any]:
    """The statement of each tap, in order: the bodies of the unrolled loops over taps."""
    if store is None:
        return []
    over = not isinstance(body, tirx.For) or uses(store.indices[0], body.loop_var)
    if over or body.kind != tirx.ForKind.UNROLLED:
        return [body]
    steps = range(int(body.extent))
    return [one for step in steps for one in _taps(at_step(body.body, body, step), store)]


def _added_up(*taps: Any) -> Any:
    """The statement for one tap or two, summed up in 16 bits.

    None where the factors are no signed bytes, or the taps' conditions differ.
    """
    found = [_factors(_stored(one)) for one in taps]
    factors = [one for one in found if one is not None]
    first, *others = map(_without_taps, taps)
    if len(factors) < len(taps) or not all(structural_equal(first, one) for one in others):
        return None

    def added(store: Any) -> Any:
        lanes = int(store.indices[0].lanes)
        parts = [_eight(factors, first) for first in range(0, lanes, _EIGHT)]
        total = parts[0] if len(parts) == 1 else tirx.Shuffle(parts, _numbers(0, lanes))
        return tirx.BufferStore(store.buffer, store.value.a + total, store.indices)

    return structural_map(taps[0], (tirx.BufferStore, added))


def _without_taps(body: Any) -> Any:
    """The statement of a tap, without the product that it adds."""
    return structural_map(body, (tirx.BufferStore, _kept))


def _kept(store: Any) -> Any:
    value = getattr(store.value, "a", store.value)
    return tirx.BufferStore(store.buffer, value, store.indices)


def _factors(store: Any) -> tuple[Any, ...] | None:
    """The vectors of signed bytes whose products a store adds to sums; None for another store."""
    value = store.value
    if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
        return None
    factors = [one.value for one in (value.b.a, value.b.b) if isinstance(one, tirx.Cast)]
    kinds = [str(one.ty.dtype.with_lanes(1)) for one in factors]
    whole = all(one.ty.dtype.lanes % _EIGHT == 0 for one in factors)
    return tuple(factors) if kinds == ["int8", "int8"] and whole else None


def _eight(taps: list[tuple[Any, ...]], first: int) -> Any:
    """The sums of all taps' products in eight lanes, in 32 bits. first: the first of the lanes."""
    total = None
    for pair in taps:
        halves = [tirx.Shuffle([one], _numbers(first, _EIGHT)) for one in pair]
        made = tirx.call_llvm_pure_intrin(f"int16x{_EIGHT}", PRODUCTS, *halves)
        total = made if total is None else total + made
    return tirx.Cast(f"int32x{_EIGHT}", total)


def _numbers(first: int, count: int) -> list[Any]:
    return [tirx.const(first + at, "int32") for at in range(count)]


MARK = Mark({TAP_PAIRS: flag}, Place.VECTORS, tap_pairs, verbs=("summed_by_pairs",))
