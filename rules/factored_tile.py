"""Factored tile: a contraction with few results; the cores share its long reduction.

for i, c: for k: out[i, c] += a[i, k] * weight[k, c]
-->
parallel t, c / C, i / I: for k / T: acc[I, C] += a[i, t, k] * packed[c / C, t, k, C]
for i, c: out[i, c] = sum over t of the partial results

Each share of the reduction is a micro-kernel like that of register-tile. The sum over the shares is
scheduled here too: vector by vector, mostly on one core.
"""

import math

from ansor_deploy.space import (
    WORTH_A_CORE,
    Apply,
    BlockView,
    Pass,
    fused,
    inline_producers,
    lanes,
    partition_bounded,
    share_counts,
    shared_axis,
    split_lanes,
    split_shares,
    tile_count,
    tile_reduction,
    worth_cores,
)

NAME = "factored-tile"
KINDS = ("llvm",)

# The steps of a share are a multiple of this, so that some can be unrolled.
STEP = 8


def applies(state, block, target):
    view = state.view(block)
    return view.has_no_register_tile() or _occupies_all(view, target) or Apply()


def apply(state, block, target):
    sch, view = state.sch, state.view(block)
    inline_producers(sch, view.epilogue.rv)
    count = state.choose("parallel", _counts(view, target), ordered=True)
    at = len(view.spatial) + shared_axis(view)
    share, _ = split_shares(sch, sch.get_loops(view.rv)[at], count, STEP)
    part = sch.rfactor(share, factor_axis=0)
    loops = sch.get_loops(part)
    sch.reorder(loops[at], *loops[:at])
    sch.cache_write(part, 0, "global")
    tile_reduction(state, BlockView(sch, part), target)
    partition_bounded(sch, part)
    _sum_up(state, view, target)
    return [state]


def _sum_up(state, view, target):
    """Sum over the shares and apply the epilogue, vector by vector, mostly on one core."""
    sch, epilogue = state.sch, view.epilogue
    *rows, columns, share = sch.get_loops(view.rv)
    vectors, lane = split_lanes(sch, columns, target, view.bits)
    sch.reorder(*rows, vectors, share, lane)
    task = fused(sch, [*rows, vectors])
    if math.prod(view.spatial + view.reduced) > WORTH_A_CORE:
        sch.parallel(task)
    sch.reverse_compute_at(epilogue.rv, task, preserve_unit_loops=True)
    for stage in (view.rv, epilogue.rv):
        sch.vectorize(sch.get_loops(stage)[-1])
    state.finish(view.rv, epilogue.rv, sch.decompose_reduction(view.rv, share))


def _occupies_all(view, target):
    """Why shares are not needed to occupy all cores, or are too small; None where they pay."""
    registers = target.vector_registers * lanes(target, view.bits)
    if target.cores == 1 or math.prod(view.spatial) >= target.cores * registers:
        return Pass("it has results enough for all cores")
    if worth_cores(view, target) < 2:
        return Pass("it reduces too little for another core")
    enough = tile_count(view, target) >= target.cores or _counts(view, target) == [1]
    return Pass("it has tiles enough for all cores") if enough else None


def _counts(view, target):
    return share_counts(view, tile_count(view, target), worth_cores(view, target), STEP)
