"""Prefetch what a tile's results are added to, and where they are stored, before computing a tile.

    for t (marked): acc[..] = 0 ; for k: acc[..] += .. ; for i: out[t, i] = acc[i] + x[t, i]
    -->
    for t: for i: fetch x[t, i], out[t, i] ; acc[..] = 0 ; for k: .. ; for i: out[t, i] = ..

A residual was computed some kernels earlier and comes from beyond the second cache, and so does a
line of the result before it is written. For a short reduction, waiting for them takes as long as
all its steps. With the prefetch, both arrive meanwhile. Prefetching only one of the two makes no
difference.
"""

from collections.abc import Sequence
from typing import Any

from .._lazy_tvm import collect, structural_equal, structural_map, tirx, tvm
from ..system.checks import flag
from . import Mark, Place
from .prefetch import at_zero, fetch, places, with_body

# Annotation of the innermost loop over tiles.
ADDED = "ansor.added"


def fetching_added(sch: Any, loop: Any) -> None:
    """Let the innermost loop over tiles prefetch what each tile's results are added to."""
    sch.annotate(loop, ADDED, True)


def added_prefetch(func: Any) -> Any:
    """The function with prefetches in its marked loops. Its buffers must be flat."""
    return func.with_body(structural_map(func.body, (tirx.For, _fetching)))


def _fetching(tile: Any) -> Any:
    if ADDED not in (tile.annotations or {}):
        return tile
    body = tile.body
    if isinstance(body, tirx.SeqStmt):
        *_, last = body.seq
        fetches = _fetches(last, collect(body, tirx.BufferStore))
        at = _first_place(fetches, body.seq)
        body = tirx.SeqStmt([*body.seq[:at], fetches, *body.seq[at:]])
    return with_body(tile, body, ADDED)


def _first_place(fetches: Any, stages: Sequence[Any]) -> int:
    """The first place among the stages after which all indices of the prefetches are computed."""
    asked = set(places(collect(fetches, tvm.ir.TensorLoad)))
    made = ((at, collect(stage, tirx.BufferStore)) for at, stage in enumerate(stages, 1))
    return max((at for at, some in made if any(one.buffer in asked for one in some)), default=0)


def _fetches(stage: Any, stores: list[Any]) -> Any:
    """A stage's loops around prefetches instead of stores.

    Prefetched are the elements that a store reads at its own index, and the place that it writes.
    """

    def added(store: Any) -> Any:
        (index,) = store.indices
        loads = collect(store.value, tvm.ir.TensorLoad)
        found = [one.source for one in loads if structural_equal(one.indices[0], index)]
        found = [one for one in found if not any(one.same_as(own.buffer) for own in stores)]
        if not found:
            return tirx.Evaluate(tirx.const(0, "int32"))
        return tirx.SeqStmt([fetch(one, index) for one in [*found, store.buffer]])

    return structural_map(stage, [(tirx.BufferStore, added), (tirx.For, _first_lane)])


def _first_lane(loop: Any) -> Any:
    return at_zero(loop.body, [loop.loop_var]) if loop.kind == tirx.ForKind.VECTORIZED else loop


MARK = Mark({ADDED: flag}, Place.BEFORE, added_prefetch, verbs=("fetching_added",))
