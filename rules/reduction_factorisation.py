"""Reduction factorisation: few results of long reductions, shared among the cores.

for i: for k: s[i] += a[i, k]
-->
parallel t: for k: for v (unrolled): for lane (vector): p[t, v, lane] += a[i, t, k, v, lane]
for i: s[i] = sum of p

The final sum is of one partial result a task.
"""

import math

from ansor_deploy.space import (
    ApplyAndSkipRest,
    BlockView,
    Pass,
    divisors,
    extent,
    fused,
    inline_producers,
    lane_partials,
    lanes,
    vectorize_partials,
)

NAME = "reduction-factorisation"
KINDS = ("llvm",)

# Elements that a core should have at least: below, waking another costs more than it saves.
WORTH_A_CORE = 1 << 14


def applies(state, block, target):
    view = state.view(block)
    if reason := view.reduces_nothing() or view.has_several_results():
        return reason
    if math.prod(view.spatial) >= 4 * target.cores:
        return Pass("it has results enough for all cores")
    if math.prod(view.reduced) < 4 * lanes(target):
        return Pass("it reduces too little")
    return ApplyAndSkipRest()


def apply(state, block, target):
    sch, view = state.sch, state.view(block)
    inline_producers(sch, view.rv)
    rank = len(view.spatial)
    count = state.choose("parallel", _shares(sch, view, target), ordered=True)
    vectors = state.choose("accumulators", [4, 8, 2])
    part = view.rv
    if count > 1 or not rank:
        share, _ = sch.split(sch.get_loops(view.rv)[rank], [count, None])
        part = sch.rfactor(share, factor_axis=0)
    partials = lane_partials(sch, part, vectors, target)
    task = fused(sch, sch.get_loops(part)[: len(BlockView(sch, part).spatial)])
    if extent(sch, task) > 1:
        sch.parallel(task)
    for stage in reversed(partials):
        sch.compute_at(stage, task, preserve_unit_loops=True)
    inits = vectorize_partials(sch, partials)
    state.finish(view.rv, part, *partials, *inits)
    return [state]


def _shares(sch, view, target):
    """Into how many tasks the outermost reduction may be cut, in order."""
    outer = extent(sch, sch.get_loops(view.rv)[len(view.spatial)])
    most = outer // (2 * lanes(target)) if len(view.reduced) == 1 else outer
    even = [n for n in divisors(outer) if n % target.cores == 0 and n <= most]
    alone = math.prod(view.reduced + view.spatial) < WORTH_A_CORE * target.cores
    return [1, *even[:2]] if alone else even[:4] or [1]
