"""Reduction factorisation: a reduction with few results; the cores share its long sums.

for i: for k: s[i] += a[i, k]
-->
parallel t: for k: for v (unrolled): for lane (vector): p[t, v, lane] += a[i, t, k, v, lane]
for i: s[i] = sum of p

The final sum adds up one partial result of each parallel task.
"""

import math

from ansor_deploy.space import (
    REDUCE,
    Apply,
    ApplyAndSkipRest,
    BlockView,
    Pass,
    extent,
    fused,
    inline_producers,
    lanes,
    partition_bounded,
    share_counts,
    shared_axis,
    split_shares,
    tvm,
    uses,
    worth_cores,
)

NAME = "reduction-factorisation"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if reason := view.reduces_nothing() or view.has_several_results():
        return reason
    if math.prod(view.spatial) >= 4 * target.cores:
        return Pass("it has results enough for all cores")
    if math.prod(view.reduced) < 4 * lanes(target):
        return Pass("it reduces too little")
    return Apply() if view.is_contraction else ApplyAndSkipRest()


def apply(state, block, target):
    sch, view = state.sch, state.view(block)
    inline_producers(sch, view.rv)
    rank, at = len(view.spatial), len(view.spatial) + shared_axis(view)
    counts, guess = _counts(view, target)
    count = state.choose("parallel", counts, guess, ordered=True)
    vectors = state.choose("accumulators", [4, 8, 2])
    part = view.rv
    if count > 1 or not rank:
        _in_loops(sch, view)
        share, _ = split_shares(sch, sch.get_loops(view.rv)[at], count, _step(view, target))
        part = sch.rfactor(share, factor_axis=0)
        loops = sch.get_loops(part)
        sch.reorder(*loops[:rank], loops[at], *loops[rank:at])
        rank += 1
    partials = _lane_partials(sch, BlockView(sch, part), vectors, target)
    first, *others = [*partials, part]
    task = fused(sch, sch.get_loops(first)[:rank])
    if extent(sch, task) > 1:
        sch.parallel(task)
    for stage in others:
        sch.reverse_compute_at(stage, task, preserve_unit_loops=True)
    if partials:
        inside = sch.get_loops(first)[1:]
        sch.reorder(*inside[-len(partials) :], *inside[: -len(partials)])
    inits = _vectorize_partials(sch, partials)
    partition_bounded(sch, first)
    state.finish(view.rv, part, *partials, *inits)
    return [state]


def _in_loops(sch, view):
    """Give each consumer a loop: `rfactor` fails beside a scalar block that has none."""
    for stage in sch.get_consumers(view.rv):
        if not sch.get_loops(stage):
            sch.add_unit_loop(stage)


def _lane_partials(sch, view, vectors, target):
    """Split a reduction into partial results that fill `vectors` registers; the finest block first.

        s += a[k]
        -->
        p[v, lane] += a[k, v, lane] ; q[lane] += p[v, lane] ; s += q[lane]

    Must run before a stage is moved: rfactor needs loops with nothing but the reduction in them.
    Gives an empty list where the innermost reducing loop does not divide.
    """
    inner = _innermost(sch, view, vectors * lanes(target))
    width = math.gcd(extent(sch, inner), lanes(target))
    if width == 1 or extent(sch, inner) < 2 * width:
        return []
    rest, lane = sch.split(inner, [None, width])
    rank = len(view.spatial)
    if vectors == 1 or extent(sch, rest) % vectors or extent(sch, rest) == vectors:
        return [sch.rfactor(lane, factor_axis=rank)]
    sch.split(rest, [None, vectors])
    joined = sch.rfactor(lane, factor_axis=rank)
    vector = sch.get_loops(joined)[-2]
    return [sch.rfactor(vector, factor_axis=rank), joined]


def _innermost(sch, view, enough):
    """The innermost reducing loop, fused with the loops contiguous to it where it is short.

    enough: a loop with fewer elements than this is short.
    """
    *_, last = loops = sch.get_loops(view.rv)
    if extent(sch, last) >= enough:
        return last
    return fused(sch, loops[len(loops) - max(1, _contiguous(view)) :])


def _contiguous(view):
    """How many of the innermost reducing axes are contiguous together in every operand."""
    count = 0
    for axis in reversed(view.axes(REDUCE)):
        places = [(buffer, -1 - count) for buffer, indices in view.operands if count < len(indices)]
        ends = [indices[-1 - count] for _, indices in view.operands if count < len(indices)]
        beside = [tvm.sym.Analyzer().simplify(index - axis.var) for index in ends]
        if len(ends) < len(view.operands) or any(uses(one, axis.var) for one in beside):
            break
        count += 1
        if any(int(buffer.shape[at]) != int(axis.dom.extent) for buffer, at in places):
            break
    return count


def _vectorize_partials(sch, partials):
    """Vectorise the lanes, innermost, and unroll the registers. Returns the initialising blocks.

    partials: the result of `_lane_partials`, moved into one parallel loop. In it, the loops of the
    factored axes come first.
    """
    inits = []
    for stage in partials:
        _, *own = sch.get_loops(stage)
        factored, others = own[: len(partials)], own[len(partials) :]
        sch.reorder(*others, *factored)
        sch.vectorize(factored[-1])
        for loop in factored[:-1]:
            sch.unroll(loop)
        init = sch.decompose_reduction(stage, others[0] if others else factored[0])
        *registers, lane = sch.get_loops(init)
        sch.vectorize(lane)
        if registers and len(partials) > 1 and stage is partials[0]:
            sch.unroll(registers[-1])
        inits.append(init)
    return inits


def _counts(view, target):
    """The numbers of shares that the reduction may be cut into, and the guess's index."""
    tasks, step = math.prod(view.spatial), _step(view, target)
    if (worth := worth_cores(view, target)) > 1:
        return share_counts(view, tasks, worth, step), 0
    found = share_counts(view, tasks, target.cores, step)
    return sorted({1, *found[:2]}), 0


def _step(view, target):
    """A share is a multiple of this: whole vectors of four registers along a row, else anything."""
    return 4 * lanes(target) if len(view.reduced) - 1 == shared_axis(view) else 1
