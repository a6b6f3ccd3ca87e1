"""Thread tile: SSSRRS over the threads of a GPU, operands fetched together into shared memory.

for i, j: for k: c[i, j] += a[i, k] * b[k, j]
-->
blockIdx.x i0, j0: vthread.x i1, j1: threadIdx.x i2, j2:
    for k0:
        shared: a[.., ..], b[.., ..]        fetched by all threads of the block
        for k1: for i3, j3: local[i, j] += a[i, k] * b[k, j]
    c[i, j] = local[i, j]

All sizes are free, and so are the elements that a thread fetches at once, whether operands are
fetched at all, and what is unrolled: each within what the target leaves (Ansor, section 4.1, and
TVM's MultiLevelTiling for CUDA, which has the same structure).
"""

import math

from ansor_deploy.space import (
    ApplyAndSkipRest,
    bound,
    choose_spatial,
    choose_terms,
    extent,
    fused,
    split_levels,
    unrolled,
    vector_widths,
)

NAME = "thread-tile"
KINDS = ("cuda",)


def applies(state, block, target):
    view = state.view(block)
    return view.reuses_nothing() or view.is_single_number() or ApplyAndSkipRest()


def apply(state, block, target):
    """Each thread with its own accumulators; ValueError if the sizes are more than it may have."""
    sch, limits, view = state.sch, target.gpu, state.view(block)
    reads = [position for position, _ in view.reads]
    together = state.choose("shared", [1, 0])
    tiles = choose_spatial(state, view, limits)
    terms = choose_terms(state, view, tiles, limits)
    reduced = [[size // step, step] for size, step in zip(view.reduced, terms, strict=True)]
    write = _accumulated_locally(sch, view)
    levels = split_levels(sch, view.rv, "SSSRRS", [one.factors for one in tiles], reduced)
    for level, axis in zip(levels, ("blockIdx.x", "vthread.x", "threadIdx.x"), strict=False):
        bound(sch, level, axis)
    threads = sch.get_loops(view.rv)[2]
    sch.reverse_compute_at(write, threads, preserve_unit_loops=True)
    if together:
        count = math.prod(one.threads for one in tiles)
        shared = sum(_share(state, view, at, levels[3], count, target) for at in reads)
        if shared > limits.shared_bytes_per_block:
            raise ValueError(f"{shared} bytes of shared memory are more than a block may have")
    unrolled(state, sch.get_loops(view.rv)[0], [0, 16, 64, 512], guess=1, ordered=True)
    init = sch.decompose_reduction(view.rv, levels[3][0])
    state.finish(view.rv, init, write)
    return [state]


def _accumulated_locally(sch, view):
    """Accumulate in registers; the stage that writes them out, the consumer if there is one."""
    if (consumer := view.epilogue) is None:
        return sch.cache_write(view.rv, 0, "local")
    sch.set_scope(view.rv, 0, "local")
    return consumer.rv


def _share(state, view, position, steps, threads, target):
    """Fetch an operand for all threads of a block, neighbours by neighbours; its bytes.

    steps: the loops around the fetching, within those over blocks and threads.
    """
    sch, dtype = state.sch, view.node.reads[position].source.dtype
    copy = sch.cache_read(view.rv, position, "shared")
    sch.compute_at(copy, steps[-1], preserve_unit_loops=True)
    own = fused(sch, sch.get_loops(copy)[3 + len(steps) :])
    size = extent(sch, own)
    widths = vector_widths(size, threads, dtype.itemsize, target.vector_bytes)
    width = state.choose("vector", widths, guess=len(widths) - 1, ordered=True)
    _, lane, vector = sch.split(own, [None, threads, width])
    bound(sch, [lane], "threadIdx.x")
    if width > 1:
        sch.vectorize(vector)
    state.finish(copy)
    return size * dtype.itemsize
