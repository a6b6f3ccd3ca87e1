"""Cross-thread reduction: the threads of a block reduce together.

for i: for k: s[i] += a[i, k]
-->
blockIdx.x i: for k / T: threadIdx.x k % T: s[i] += a[i, k]

T is a choice. TVM's lowering adds up the threads' partial sums, in shared memory or by shuffles.
The rule also serves products that hardly read an operand again, such as a row times a matrix. Where
neighbouring results read neighbouring elements, the threads of a warp go along the results, and
threadIdx.y along the sum:

blockIdx.x i / 32: threadIdx.x i % 32: for k / T: threadIdx.y k % T: s[i] += a[k] * b[k, i]
"""

import math

from ansor_deploy.space import (
    SPATIAL,
    ApplyAndSkipRest,
    Pass,
    bound,
    extent,
    fused,
    hardly_reuses,
)

NAME = "cross-thread-reduction"
KINDS = ("cuda",)


def applies(state, block, target):
    view = state.view(block)
    if reason := view.reduces_nothing() or view.has_several_results():
        return reason
    if (terms := math.prod(view.reduced)) < target.gpu.warp_size:
        return Pass(f"its {terms} terms are fewer than a warp has threads")
    return ApplyAndSkipRest()


def apply(state, block, target):
    sch, view, warp = state.sch, state.view(block), target.gpu.warp_size
    along = hardly_reuses(view, target.gpu) and view.spatial and _reads_along_results(view)
    loops = sch.get_loops(view.rv)
    rank = len(view.spatial)
    terms = fused(sch, loops[rank:])
    rows = loops[:rank] or [sch.add_unit_loop(sch.get_loops(view.rv)[0])]
    if along:
        rows[-1:] = sch.split(rows[-1], [None, warp])
        bound(sch, [rows.pop()], "threadIdx.x")
    most = target.gpu.max_threads_per_block
    least, most = (2, most // warp) if along else (warp, most)
    _, together = sch.split(terms, [None, _threads(state, least, min(most, extent(sch, terms)))])
    bound(sch, [together], "threadIdx.y" if along else "threadIdx.x")
    bound(sch, rows, "blockIdx.x")
    state.done.add(block)
    return [state]


def _reads_along_results(view):
    """Whether neighbours along the result's last axis read neighbours in the largest operand."""
    _, indices = view.largest_operand
    return view.axes(SPATIAL)[-1].var.same_as(indices[-1])


def _threads(state, least, most):
    """Choose how many threads share a sum."""
    sizes = [least * 2**k for k in range(6) if least * 2**k <= most]
    return state.choose("parallel", sizes, guess=min(2, len(sizes) - 1), ordered=True)
