"""Direct thread tile: SSSRRS over a GPU's threads; each thread reads its own operands.

for i, j: for k: c[i, j] += a[i, k] * b[k, j]
-->
blockIdx.x i0, j0: vthread.x i1, j1: threadIdx.x i2, j2:
    for k0: for k1: for i3, j3: local[i, j] += a[i, k] * b[k, j]
    c[i, j] = local[i, j]

Threads share operands through the first cache at best, but no thread waits for another. This suits
operands that are read few times, and short sums.
"""

from ansor_deploy.space import Apply, ApplyAndSkipRest, hardly_reuses, tile_over_threads

NAME = "direct-thread-tile"
KINDS = ("cuda",)


def applies(state, block, target):
    view = state.view(block)
    if reason := view.reuses_nothing() or view.is_single_number():
        return reason
    return Apply(later=True) if hardly_reuses(view, target.gpu) else ApplyAndSkipRest()


def apply(state, block, target):
    return [tile_over_threads(state, block, target)]
