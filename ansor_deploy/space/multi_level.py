"""The loops of multi-level tiling, for the rules that tile so."""

from __future__ import annotations

import math
from typing import Any

from ..target import Target
from . import blocks as b
from . import loops as l
from .rule import Pass
from .state import State

# Levels of the result's axes and of the reducing axes in SSRSRS.
SPATIAL, REDUCING = 4, 2
# Widest innermost tile of an axis.
INNERMOST = 64
# Rows of the innermost tile that is guessed.
ROWS = 4
UNROLL = [16, 0, 64, 512]


def unfit(state: State, block: str) -> Pass | None:
    """Why a block is not tiled so, or None."""
    node = state.sch.get(state.block(block))
    if not b.is_contraction(node):
        return Pass("no operand of it is reused")
    if len(node.writes) != 1:
        return Pass("it computes several results at once")
    if not b.spatial_vars(node):
        return Pass("its result is a single number")
    return None


def tile(state: State, block: Any, target: Target) -> list[list[Any]]:
    """Split and order the loops; the levels, outermost first: S S R S R S."""
    sch = state.sch
    l.inline_producers(sch, block)
    loops = sch.get_loops(block)
    rank = len(b.spatial_vars(sch.get(block)))
    widths = [*[ROWS] * (rank - 1), l.lanes(target)]
    spatial = [
        state.sample_tile(loop, SPATIAL, INNERMOST, _guess(l.extent(sch, loop), width))
        for loop, width in zip(loops, widths, strict=False)
    ]
    reducing = [state.sample_tile(loop, REDUCING, INNERMOST) for loop in loops[rank:]]
    s0, s1, s2, s3 = (list(level) for level in zip(*spatial, strict=True))
    r0, r1 = (list(level) for level in zip(*reducing, strict=True))
    levels = [s0, s1, r0, s2, r1, s3]
    sch.reorder(*(loop for level in levels for loop in level))
    return levels


def _guess(extent: int, width: int) -> list[int]:
    """Vectors of the contiguous axis; of another some rows, whose operands are reused."""
    inner = math.gcd(extent, width)
    return [extent // inner, 1, 1, inner]


def finish(state: State, block: str, levels: list[list[Any]], target: Target) -> None:
    """Outer tiles parallel, the innermost loop in vectors, the rest unrolled by pragma."""
    sch = state.sch
    stage = state.block(block)
    _, lane = l.split_lanes(sch, levels[5][-1], target)
    if l.extent(sch, lane) > 1:
        sch.vectorize(lane)
    task = sch.fuse(*levels[0]) if len(levels[0]) > 1 else levels[0][0]
    sch.parallel(task)
    # A block without its init is no reduction any more: annotate first, then decompose.
    init = sch.decompose_reduction(stage, levels[2][0])
    inner = sch.get_loops(init)[-1]
    if l.extent(sch, inner) > 1:
        sch.vectorize(inner)
    steps = state.choose("unroll", UNROLL)
    if steps:
        sch.annotate(task, "pragma_auto_unroll_max_step", steps)
        sch.annotate(task, "pragma_unroll_explicit", True)
    state.done |= {sch.get(made).name_hint for made in (stage, init)}
