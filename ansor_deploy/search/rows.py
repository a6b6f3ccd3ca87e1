"""Rows: softmax, normalisations and other reductions along the contiguous axis.

for row: max ; for row: exp ; for row: sum ; for row: divide
-->
for row in parallel: max (in lanes) ; exp ; sum (in lanes) ; divide

A reduction becomes as many partial ones as a vector has lanes, combined at the end.
"""

from __future__ import annotations

from typing import Any

from ..model import blocks as b
from ..target import Target


def schedule_rows(sch: Any, target: Target) -> None:
    """All stages of a row together, rows in parallel; ScheduleError where they cannot be."""
    lanes = max(1, target.vector_bytes // 4)
    partials = [_split_reduction(sch, stage, lanes) for stage in b.blocks(sch)]
    names = {sch.get(partial).name_hint for partial in partials if partial is not None}
    *stages, output = b.blocks(sch)
    loops = sch.get_loops(output)
    reduces = b.is_reduction(sch.get(output))
    spatial = len(b.spatial_vars(sch.get(output))) if reduces else len(loops) - 1
    if spatial < 1:
        raise ValueError("a single row: there is nothing to run in parallel")
    row = sch.fuse(*loops[:spatial]) if spatial > 1 else loops[0]
    sch.parallel(row)
    for stage in reversed(stages):
        sch.compute_at(stage, row, preserve_unit_loops=True)
    for stage in [*stages, output]:
        if sch.get(stage).name_hint in names:
            _vectorize_partial(sch, stage)
        elif not b.is_reduction(sch.get(stage)):
            _vectorize_elementwise(sch, stage, lanes)


def _split_reduction(sch: Any, stage: Any, lanes: int) -> Any | None:
    """The block of partial results of a reduction, one a lane, if its row divides.

    Done before the stages share a row: rfactor wants the reduction alone below its loops.
    """
    if not b.is_reduction(sch.get(stage)):
        return None
    inner = sch.get_loops(stage)[-1]
    extent = int(sch.get(inner).extent)
    if extent % lanes or extent < 2 * lanes:
        return None
    _, lane = sch.split(inner, [None, lanes])
    return sch.rfactor(lane, factor_axis=len(b.spatial_vars(sch.get(stage))))


def _vectorize_partial(sch: Any, partial: Any) -> None:
    # The factored axis comes first of the block's axes, so its loop first below the row.
    lane, *others = sch.get_loops(partial)[1:]
    sch.reorder(*others, lane)
    sch.vectorize(lane)
    init = sch.decompose_reduction(partial, others[0])
    sch.vectorize(sch.get_loops(init)[-1])


def _vectorize_elementwise(sch: Any, stage: Any, lanes: int) -> None:
    inner = sch.get_loops(stage)[-1]
    extent = int(sch.get(inner).extent)
    if extent % lanes == 0 and extent > lanes:
        _, vector = sch.split(inner, [None, lanes])
        sch.vectorize(vector)
