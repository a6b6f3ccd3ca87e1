"""Cross-thread reduction: the threads of a block reduce together.

for i: for k: s[i] += a[i, k]
-->
blockIdx.x i: for k / T: threadIdx.x k % T: s[i] += a[i, k]

T is a choice. What the threads hold is added up by TVM's lowering, in shared memory or by shuffles.
"""

import math

from ansor_deploy.space import blocks as b
from ansor_deploy.space import loops as l
from ansor_deploy.space.rule import ApplyAndSkipRest, Pass

NAME = "cross-thread-reduction"
KINDS = ("cuda",)


def applies(state, block, target):
    node = state.sch.get(state.block(block))
    if not b.is_reduction(node):
        return Pass("it reduces nothing")
    if len(node.writes) != 1:
        return Pass("it computes several results at once")
    reduced = math.prod(int(a.dom.extent) for a in node.iter_vars if a.iter_type == b.REDUCE)
    if reduced < target.gpu.warp_size:
        return Pass(f"its {reduced} terms are fewer than a warp has threads")
    return ApplyAndSkipRest()


def apply(state, block, target):
    sch = state.sch
    loops = sch.get_loops(state.block(block))
    rank = len(b.spatial_vars(sch.get(state.block(block))))
    reduced = sch.fuse(*loops[rank:]) if len(loops) > rank + 1 else loops[rank]
    warp, most = target.gpu.warp_size, target.gpu.max_threads_per_block
    sizes = [warp * 2**k for k in range(6) if warp * 2**k <= min(most, l.extent(sch, reduced))]
    size = state.choose("parallel", sizes, guess=min(2, len(sizes) - 1))
    _, together = sch.split(reduced, [None, size])
    sch.bind(together, "threadIdx.x")
    if rank:
        row = sch.fuse(*loops[:rank]) if rank > 1 else loops[0]
    else:
        row = sch.add_unit_loop(sch.get_loops(state.block(block))[0])
    sch.bind(row, "blockIdx.x")
    state.done.add(block)
    return [state]
