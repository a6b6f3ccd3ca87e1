"""Cross-thread reduction: the threads of a block reduce together.

for i: for k: s[i] += a[i, k]
-->
blockIdx.x i: for k / T: threadIdx.x k % T: s[i] += a[i, k]

T is a choice. What the threads hold is added up by TVM's lowering, in shared memory or by shuffles.
"""

import math

from ansor_deploy.space import ApplyAndSkipRest, Pass, bound, extent, fused

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
    sch = state.sch
    loops = sch.get_loops(state.block(block))
    rank = len(state.view(block).spatial)
    terms = fused(sch, loops[rank:])
    warp, most = target.gpu.warp_size, target.gpu.max_threads_per_block
    sizes = [warp * 2**k for k in range(6) if warp * 2**k <= min(most, extent(sch, terms))]
    size = state.choose("parallel", sizes, guess=min(2, len(sizes) - 1), ordered=True)
    _, together = sch.split(terms, [None, size])
    bound(sch, [together], "threadIdx.x")
    rows = loops[:rank] or [sch.add_unit_loop(sch.get_loops(state.block(block))[0])]
    bound(sch, rows, "blockIdx.x")
    state.done.add(block)
    return [state]
