"""Thread tile: SSSRRS over the threads of a GPU, operands fetched together into shared memory.

for i, j: for k: c[i, j] += a[i, k] * b[k, j]
-->
blockIdx.x i0, j0: vthread.x i1, j1: threadIdx.x i2, j2:
    for k0:
        shared: a[.., ..], b[.., ..]        fetched by all threads of the block
        for k1: for i3, j3: local[i, j] += a[i, k] * b[k, j]
    c[i, j] = local[i, j]

All sizes are free, and so are the elements that a thread fetches at once and what is unrolled: each
within what the target leaves (Ansor, section 4.1, and TVM's MultiLevelTiling for CUDA, which has
the same structure).
"""

from ansor_deploy.space import Apply, hardly_reuses, tile_over_threads

NAME = "thread-tile"
KINDS = ("cuda",)


def applies(state, block, target):
    view = state.view(block)
    if reason := view.reuses_nothing() or view.is_single_number():
        return reason
    return Apply(later=hardly_reuses(view, target.gpu))


def apply(state, block, target):
    return [tile_over_threads(state, block, target, shared=True)]
