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
    *stages, output = b.blocks(sch)
    if b.is_reduction(sch.get(output)):
        loops = sch.get_loops(output)
        spatial = len(b.spatial_vars(sch.get(output)))
    else:
        loops = sch.get_loops(output)
        spatial = len(loops) - 1
    row = sch.fuse(*loops[:spatial]) if spatial > 1 else loops[0]
    sch.parallel(row)
    for stage in reversed(stages):
        sch.compute_at(stage, row, preserve_unit_loops=True)
    for stage in stages:
        _vectorize_stage(sch, stage, target)
    _vectorize_stage(sch, output, target)


def _vectorize_stage(sch: Any, stage: Any, target: Target) -> None:
    lanes = target.vector_bytes // 4
    inner = sch.get_loops(stage)[-1]
    extent = int(sch.get(inner).extent)
    if extent % lanes or extent < 2 * lanes:
        return
    if not b.is_reduction(sch.get(stage)):
        _, vector = sch.split(inner, [None, lanes])
        sch.vectorize(vector)
        return
    _, lane = sch.split(inner, [None, lanes])
    partial = sch.rfactor(lane, factor_axis=len(b.spatial_vars(sch.get(stage))))
    sch.compute_at(partial, sch.get_loops(stage)[0], preserve_unit_loops=True)
    loops = sch.get_loops(partial)
    lane = next(loop for loop in loops if int(sch.get(loop).extent) == lanes)
    others = [loop for loop in loops[1:] if not sch.get(loop).same_as(sch.get(lane))]
    sch.reorder(*others, lane)
    sch.vectorize(lane)
    init = sch.decompose_reduction(partial, others[0])
    sch.vectorize(sch.get_loops(init)[-1])
