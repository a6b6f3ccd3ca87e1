"""The loops of multi-level tiling, for the rules that tile so."""

from __future__ import annotations

import math
from typing import Any

from ..target import Target
from .block_view import BlockView
from .loops import extent, inline_producers, lanes, parallel, tiled, unrolled, vectorized
from .state import State

# Widest innermost tile of an axis.
INNERMOST = 64
# Rows of the innermost tile that is guessed.
ROWS = 4
# The guess first, and not in order: records know each by its index.
UNROLL = (16, 0, 64, 512)


def multi_level_tile(state: State, view: BlockView, target: Target) -> list[list[Any]]:
    """Split and order a block's loops; the levels, outermost first: S S R S R S.

    The guess is vectors of the contiguous axis and some rows of the others: both reuse operands.
    """
    inline_producers(state.sch, view.rv)
    *rows, columns = view.spatial
    inner = [*(math.gcd(size, ROWS) for size in rows), math.gcd(columns, lanes(target))]
    spatial = [[size // own, 1, 1, own] for size, own in zip(view.spatial, inner, strict=True)]
    reducing = [[size, 1] for size in view.reduced]
    return tiled(state, view, "SSRSRS", INNERMOST, spatial + reducing)


def finish_levels(state: State, block: str, levels: list[list[Any]], target: Target) -> None:
    """Outer tiles parallel, the innermost loop in vectors, the rest unrolled by pragma."""
    sch = state.sch
    stage = state.block(block)
    vectorized(sch, levels[5][-1], target)
    task = parallel(sch, levels[0])
    # A block without its init is no reduction any more: annotate first, then decompose.
    init = sch.decompose_reduction(stage, levels[2][0])
    inner = sch.get_loops(init)[-1]
    if extent(sch, inner) > 1:
        sch.vectorize(inner)
    unrolled(state, task, UNROLL)
    state.finish(stage, init)
