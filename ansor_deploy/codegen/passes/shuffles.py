"""Read what lanes copy as a few contiguous vectors, and put their elements in order in registers.

    for lane in 16 (vector): y[16 i + lane] = x[lane % 2 * 58 + 8 i + lane // 2]
    -->
    y[16 i .. 16 i + 15] = shuffle(x[8 i .. 8 i + 7], x[8 i + 58 .. 8 i + 65])

Shuffles of channels, pixels that become channels, and concatenations whose parts alternate are like
this. Otherwise each lane computes its place, and loads its element alone.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from ..._tvm import at_step, op_name, structural_map, tirx, tvm
from ...marks.prefetch import ranges

# Elements of a run that make a load of it worth its place in the shuffle.
WORTH_A_LOAD = 2
_COPIED = ("float32", "int", "uint")


class _Place(NamedTuple):
    """Where a lane reads: an index of a buffer."""

    buffer: Any
    index: Any


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.Shuffles")
def shuffles(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with vectors of copied elements as shuffles. Loops over lanes are loops yet."""
    return func.with_body(structural_map(func.body, (tirx.For, partial(_shuffled, ranges(func)))))


def _shuffled(known: Any, loop: Any) -> Any:
    """A loop over lanes that copy elements, as one store of a shuffle; other loops as they are."""
    store = loop.body
    if loop.kind != tirx.ForKind.VECTORIZED or not _copies(store):
        return loop
    steps = range(int(loop.extent))
    first, *others = (at_step(store.indices[0], loop, step) for step in steps)
    if [_apart(known, other, first) for other in others] != [*steps[1:]]:
        return loop
    found = [_place(known.simplify(at_step(store.value, loop, step))) for step in steps]
    places = [place for place in found if place]
    value = _in_order(known, places) if len(places) == len(found) else None
    row = tirx.Ramp(first, tirx.const(1, first.ty.dtype), len(steps))
    return tirx.BufferStore(store.buffer, value, [row]) if value is not None else loop


def _copies(store: Any) -> bool:
    """Whether a statement stores one element of a flat buffer in another one."""
    if not isinstance(store, tirx.BufferStore) or len(store.indices) != 1:
        return False
    chosen = op_name(store.value) == "prim.if_then_else"
    copied = str(store.buffer.dtype).startswith(_COPIED)
    return copied and (chosen or isinstance(store.value, tvm.ir.TensorLoad))


def _place(value: Any) -> _Place | None:
    """Where a value is read; None if it is no element of a flat buffer."""
    if not isinstance(value, tvm.ir.TensorLoad) or len(value.indices) != 1:
        return None
    return _Place(value.source, value.indices[0])


def _apart(known: Any, one: Any, other: Any) -> int | None:
    """The difference of two indices; None where it is not constant."""
    found = known.simplify(one - other)
    return int(found) if isinstance(found, tirx.IntImm) else None


def _in_order(known: Any, places: list[_Place]) -> Any:
    """A shuffle of what lanes read; None where a load a lane, or one in steps, is as good."""
    found: dict[Any, list[tuple[int, int]]] = {}  # of a buffer: offsets from its first, and lanes
    first: dict[Any, _Place] = {}
    for lane, place in enumerate(places):
        start = first.setdefault(place.buffer, place)
        apart = _apart(known, place.index, start.index)
        if apart is None:
            return None
        found.setdefault(place.buffer, []).append((apart, lane))
    if len(found) == 1 and len({b[0] - a[0] for a, b in pairwise(*found.values())}) < 2:
        return None
    runs = [(first[buffer], run) for buffer, read in found.items() for run in _runs(read)]
    return _shuffle(runs) if len(runs) * WORTH_A_LOAD <= len(places) else None


def _runs(read: list[tuple[int, int]]) -> list[dict[int, list[int]]]:
    """Runs of offsets without gaps; of each offset, the lanes that read it."""
    runs: list[dict[int, list[int]]] = []
    for offset, lane in sorted(read):
        if not runs or offset > max(runs[-1]) + 1:
            runs.append({})
        runs[-1].setdefault(offset, []).append(lane)
    return runs


def _shuffle(runs: list[tuple[_Place, dict[int, list[int]]]]) -> Any:
    """Loads of runs, each with the place of offset 0, and a shuffle that puts them in order."""
    vectors: list[Any] = []
    order: dict[int, int] = {}
    before = 0
    for start, run in runs:
        base = start.index + min(run)
        row = tirx.Ramp(base, tirx.const(1, base.ty.dtype), len(run)) if len(run) > 1 else base
        vectors.append(tirx.BufferLoad(start.buffer, [row]))
        order |= {lane: before + at for at, lanes in enumerate(run.values()) for lane in lanes}
        before += len(run)
    vectors *= -(-len(order) // before)  # TVM wants as many elements as there are lanes
    return tirx.Shuffle(vectors, [tirx.const(order[lane], "int32") for lane in sorted(order)])
