"""Prefetch weights two pages ahead, where only one tile of rows uses them.

    for k (marked): acc[..] += a[k] * packed[p, k, ..]
    -->
    for k: fetch packed[p, k + ahead, ..] ; acc[..] += a[k] * packed[p, k, ..]

Each weight is loaded once, so the tile takes as long as the weights take to come from memory. A
processor prefetches by itself, but starts again with every page, and short weights use up a page
quickly. Prefetching beyond the last weight does nothing.
"""

from __future__ import annotations

import math
from typing import Any

from .._lazy_tvm import collect, structural_map, tirx, tvm, uses
from ..system.checks import flag
from . import Mark, Place
from .prefetch import LINE, MOST_LINES, at_zero, fetch, ranges, with_body

# Annotation of the innermost loop over a reduction's steps that is not unrolled.
STREAMED = "ansor.streamed"
# How many bytes a prefetch is ahead of the load.
AHEAD = 8192


def streaming(sch: Any, loop: Any) -> None:
    """Let each step of a reduction prefetch the weights of a later one."""
    sch.annotate(loop, STREAMED, True)


def streamed(func: Any) -> Any:
    """The function with prefetches in its marked loops. Its buffers must be flat."""
    known = ranges(func)

    def fetching(loop: Any) -> Any:
        if STREAMED not in (loop.annotations or {}):
            return loop
        fetches = _fetches(loop, known)
        body = tirx.SeqStmt([*fetches, loop.body]) if fetches else loop.body
        return with_body(loop, body, STREAMED)

    return func.with_body(structural_map(func.body, (tirx.For, fetching)))


def _fetches(loop: Any, known: Any) -> list[Any]:
    """The prefetches of a step, of as many lines as it reads."""
    load, inside = _weights(loop), [one.loop_var for one in collect(loop.body, tirx.For)]
    if load is None:
        return []
    start = at_zero(load.indices[0], inside)
    read = known.const_int_bound(known.simplify(load.indices[0] - start))
    line = LINE // load.source.dtype.itemsize
    lines = read.max_value // line + 1
    if read.min_value != 0 or lines > MOST_LINES:
        return []
    first = start + AHEAD // load.source.dtype.itemsize
    return [fetch(load.source, first + number * line) for number in range(lines)]


def _weights(loop: Any) -> Any:
    """The load from the largest buffer that is read along lanes and moves with the steps."""
    lanes = [o.loop_var for o in collect(loop, tirx.For) if o.kind == tirx.ForKind.VECTORIZED]
    stored = [store.buffer for store in collect(loop.body, tirx.BufferStore)]
    loads = [
        load
        for load in collect(loop.body, tvm.ir.TensorLoad)
        if uses(load.indices[0], loop.loop_var)
        and any(uses(load.indices[0], lane) for lane in lanes)
        and not any(load.source.same_as(one) for one in stored)
    ]
    return max(loads, key=lambda load: math.prod(map(int, load.source.shape)), default=None)


MARK = Mark({STREAMED: flag}, Place.STEPS, streamed, verbs=("streaming",))
