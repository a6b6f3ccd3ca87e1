"""Row fusion: softmax, normalisations and other reductions along the contiguous axis.

for i: for k: s[i] += a[i, k]
for i, j: y[i, j] = a[i, j] / s[i]
-->
parallel i:
    for k: for v (unrolled): for lane (vector): p[v, lane] += a[i, k, v, lane]
    s = sum of p
    for j (vectors): y[i, j] = a[i, j] / s

A row is read from memory once and stays in the cache for all stages.
"""

import math

from ansor_deploy.space import (
    ApplyAndSkipRest,
    BlockView,
    Pass,
    blocks,
    inline_producers,
    parallel,
    reduced_in_lanes,
    unrolled,
    vectorized,
)

NAME = "row-fusion"
KINDS = ("llvm",)

# One core reduces a row of this length sooner than several cores can be woken.
LONG_ROW = 1 << 15
# Unrolled steps. The guess comes first. Do not sort: records know an option by its index.
UNROLL = [0, 64, 16]


def applies(state, block, target):
    stages = _stages(state, state.block(block))
    reductions = [stage for stage in stages if stage.is_reduction]
    if not reductions:
        return Pass("no row reduction leads to it")
    if any(stage.has_several_results() for stage in stages):
        return Pass("a stage computes several results at once")
    if across := [stage.name for stage in reductions if not stage.is_along_rows]:
        return Pass(f"{across[0]} does not reduce along the contiguous axis")
    names = {stage.name for stage in stages}
    for stage in stages[:-1]:
        if any(user.name not in names for user in stage.consumers):
            return Pass(f"{stage.name} is also needed elsewhere")
    if (depth := _depth(stages)) < 1:
        return Pass("all of it is one row")
    rows = math.prod((stages[-1].spatial + stages[-1].reduced)[:depth])
    if rows < target.cores and max(math.prod(one.reduced) for one in reductions) > LONG_ROW:
        return Pass("its rows are too few and too long for one core each")
    return ApplyAndSkipRest()


def apply(state, block, target):
    sch = state.sch
    inline_producers(sch, state.block(block))
    stages = _stages(state, state.block(block))
    depth = _depth(stages)
    vectors = state.choose("accumulators", [4, 2, 8])
    rows = [stage.rv for stage in stages]
    reductions = [stage.rv for stage in stages if stage.is_reduction]
    row = parallel(sch, sch.get_loops(rows[-1])[:depth])
    for stage in reversed(rows[:-1]):
        sch.compute_at(stage, row, preserve_unit_loops=True)
    unrolled(state, row, UNROLL)
    for stage in rows:
        if not BlockView(sch, stage).is_reduction and len(loops := sch.get_loops(stage)) > 1:
            vectorized(sch, loops[-1], target)
    inits = [reduced_in_lanes(sch, stage, vectors, target) for stage in reductions]
    state.finish(*rows, *inits)
    return [state]


def _stages(state, block):
    """The stages that a block's rows need, the block last; no contractions, no finished blocks."""
    sch = state.sch
    # Each look-up becomes an instruction in a record's trace: keep the look-ups and their order.
    names, pending = set(), [BlockView(sch, block)]
    while pending:
        stage = pending.pop()
        if stage.name not in names:
            names.add(stage.name)
            pending += [
                producer
                for producer in stage.producers
                if producer.name not in state.done and not producer.is_contraction
            ]
    return [stage for rv in blocks(sch) if (stage := BlockView(sch, rv)).name in names]


def _depth(stages):
    """How many outer axes of the last stage count rows: all reductions keep these axes."""
    *_, last = stages
    depths = [len(last.spatial) - (not last.is_reduction)]
    for stage in stages:
        if stage.is_reduction:
            extents = stage.spatial
            while len(extents) > 1 and extents[-1] == 1:
                extents.pop()
            depths.append(len(extents))
    return min(depths)
