"""Thread tile: SSSRRSRS over the threads of a GPU, operands fetched together into shared memory.

for i, j: for k: c[i, j] += a[i, k] * b[k, j]
-->
blockIdx.x i0, j0: vthread.x i1, j1: threadIdx.x i2, j2:
    for k0:
        shared: a[.., ..], b[.., ..]        fetched by all threads of the block
        for k1: for i3, j3: for k2: for i4, j4: local[i, j] += a[i, k] * b[k, j]
    c[i, j] = local[i, j]

All sizes are free, within the target's threads and shared memory (Ansor, section 4.1, and TVM's
MultiLevelTiling for CUDA, which has the same structure).
"""

from ansor_deploy.space import blocks as b
from ansor_deploy.space import threads
from ansor_deploy.space.rule import ApplyAndSkipRest, Pass

NAME = "thread-tile"
KINDS = ("cuda",)


def applies(state, block, target):
    node = state.sch.get(state.block(block))
    if not b.is_contraction(node):
        return Pass("no operand of it is reused")
    if not b.spatial_vars(node):
        return Pass("its result is a single number")
    return ApplyAndSkipRest()


def apply(state, block, target):
    threads.tile(state, state.block(block), target)
    return [state]
