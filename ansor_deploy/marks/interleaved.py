"""Elements of a few vectors are interleaved in registers and stored together.

    for c in range(3) (marked): for lane (vector): y[3 lane + c] = v(c)[lane]
    -->
    y[..] = v(0)[0], v(1)[0], v(2)[0], v(0)[1], ..          one store of three vectors

Otherwise each vector is stored one element at a time, since its elements are not contiguous.
"""

from __future__ import annotations

from typing import Any

from .._lazy_tvm import at_step, structural_map, tirx, tvm
from ..system.checks import flag
from . import Mark, Place

# Annotation of a loop over vectors, around one over lanes. The stride of a vector's elements is
# the number of vectors.
INTERLEAVED = "ansor.interleaved"
# Most vectors that are interleaved.
MOST_INTERLEAVED = 4


def interleave(sch: Any, loop: Any) -> None:
    """Let lowering interleave the vectors that a loop's steps store, and store them at once."""
    sch.annotate(loop, INTERLEAVED, True)


def interleaved(func: Any) -> Any:
    """The function with each marked loop as one store. Loops over lanes must be vectors already."""
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
