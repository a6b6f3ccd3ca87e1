"""Elements of a few vectors put between each other, and stored as they then lie.

    for c in range(3) (marked): for lane (vector): y[3 lane + c] = v(c)[lane]
    -->
    y[..] = v(0)[0], v(1)[0], v(2)[0], v(0)[1], ..          one store of three vectors

Without it each vector is stored an element at a time, since the next one belongs elsewhere.
"""

from __future__ import annotations

from typing import Any

from .._lazy_tvm import at_step, structural_map, tirx, tvm
from ..system.checks import flag
from . import Mark, Place

# Of a loop over vectors, around one over lanes: the next element of each is as far as there are.
INTERLEAVED = "ansor.interleaved"
# Vectors that are put between each other at most.
MOST_INTERLEAVED = 4


def interleave(sch: Any, loop: Any) -> None:
    """Let lowering store at once what the steps of a loop around one over lanes store in turns."""
    sch.annotate(loop, INTERLEAVED, True)


def interleaved(func: Any) -> Any:
    """The function, its marked loops as stores; its loops over lanes are vectors already."""
    return func.with_body(structural_map(func.body, (tirx.For, _stored_at_once)))


def _stored_at_once(loop: Any) -> Any:
    count, store = getattr(loop.extent, "value", 0), loop.body
    if INTERLEAVED not in (loop.annotations or {}) or not isinstance(store, tirx.BufferStore):
        return loop
    place = store.indices[-1]
    if len(store.indices) > 1 or not isinstance(place, tirx.Ramp) or int(place.stride) != count:
        return loop
    first, second = (at_step(place.base, loop, step) for step in (0, 1))
    apart = tvm.sym.Analyzer().simplify(second - first)
    if not isinstance(apart, tirx.IntImm) or int(apart.value) != 1:
        return loop
    lanes = int(place.lanes)
    order = [vector * lanes + lane for lane in range(lanes) for vector in range(count)]
    vectors = [at_step(store.value, loop, step) for step in range(count)]
    value = tirx.Shuffle(vectors, [tirx.const(one, "int32") for one in order])
    row = tirx.Ramp(first, tirx.const(1, place.base.ty.dtype), count * lanes)
    return tirx.BufferStore(store.buffer, value, [row])


MARK = Mark(
    {INTERLEAVED: flag}, Place.VECTORS, interleaved, verbs=("MOST_INTERLEAVED", "interleave")
)
