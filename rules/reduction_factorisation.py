"""Reduction factorisation: few results of long reductions, shared among the cores.

for i: for k: s[i] += a[i, k]
-->
parallel t: for k: for v (unrolled): for lane (vector): p[t, v, lane] += a[i, t, k, v, lane]
for i: s[i] = sum of p

The final sum is of one partial result a task.
"""

import math

from ansor_deploy.space import blocks as b
from ansor_deploy.space import loops as l
from ansor_deploy.space.rule import ApplyAndSkipRest, Pass
from ansor_deploy.space.state import divisors

NAME = "reduction-factorisation"
KINDS = ("llvm",)

# Elements that a core should have at least: below, waking another costs more than it saves.
WORTH_A_CORE = 1 << 14


def applies(state, block, target):
    node = state.sch.get(state.block(block))
    if not b.is_reduction(node):
        return Pass("it reduces nothing")
    if len(node.writes) != 1:
        return Pass("it computes several results at once")
    if _results(node) >= 4 * target.cores:
        return Pass("it has results enough for all cores")
    if _reduced(node) < 4 * l.lanes(target):
        return Pass("it reduces too little")
    return ApplyAndSkipRest()


def apply(state, block, target):
    sch, whole = state.sch, state.block(block)
    l.inline_producers(sch, whole)
    node = sch.get(whole)
    spatial = len(b.spatial_vars(node))
    count = state.choose("parallel", _shares(sch, whole, target))
    vectors = state.choose("accumulators", [4, 8, 2])
    part = whole
    if count > 1 or not spatial:
        outer, _ = sch.split(sch.get_loops(whole)[spatial], [count, None])
        part = sch.rfactor(outer, factor_axis=0)
    partials = l.lane_partials(sch, part, vectors, target)
    loops = sch.get_loops(part)[: len(b.spatial_vars(sch.get(part)))]
    task = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    if l.extent(sch, task) > 1:
        sch.parallel(task)
    for stage in reversed(partials):
        sch.compute_at(stage, task, preserve_unit_loops=True)
    inits = l.vectorize_partials(sch, partials)
    state.done |= {sch.get(stage).name_hint for stage in (whole, part, *partials, *inits)}
    return [state]


def _results(node):
    return math.prod(int(a.dom.extent) for a in node.iter_vars[: len(b.spatial_vars(node))])


def _reduced(node):
    return math.prod(int(a.dom.extent) for a in node.iter_vars[len(b.spatial_vars(node)) :])


def _shares(sch, block, target):
    """Into how many tasks the outermost reduction may be cut, the likeliest first."""
    node = sch.get(block)
    outer = l.extent(sch, sch.get_loops(block)[len(b.spatial_vars(node))])
    single = len(b.reduce_vars(node)) == 1
    most = outer // (2 * l.lanes(target)) if single else outer
    even = [n for n in divisors(outer) if n % target.cores == 0 and n <= most]
    alone = _reduced(node) * _results(node) < WORTH_A_CORE * target.cores
    return [1, *even[:2]] if alone else even[:4] or [1]
