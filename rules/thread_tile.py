"""Thread tile: SSSRRS over the threads of a GPU, operands fetched together into shared memory.

for i, j: for k: c[i, j] += a[i, k] * b[k, j]
-->
blockIdx.x i0, j0: vthread.x i1, j1: threadIdx.x i2, j2:
    for k0:
        shared: a[.., ..], b[.., ..]        fetched by all threads of the block
        for k1: for i3, j3: local[i, j] += a[i, k] * b[k, j]
    c[i, j] = local[i, j]

All sizes are free, within the target's limits. So are the elements that a thread fetches at once
and how far loops are unrolled (Ansor, section 4.1; TVM's MultiLevelTiling for CUDA has the same
structure).
"""

from functools import partial

from ansor_deploy.space import Apply, bound, extent, fused, hardly_reuses, tile_over_threads

NAME = "thread-tile"
KINDS = ("cuda",)


def applies(state, block, target):
    view = state.view(block)
    if reason := view.reuses_nothing() or view.is_single_number():
        return reason
    return Apply(later=hardly_reuses(view, target.gpu))


def apply(state, block, target):
    return [tile_over_threads(state, block, target, partial(_fetch_all, state, target))]


def _fetch_all(state, target, view, terms, threads):
    """Fetch all operands. ValueError where they exceed a block's shared memory."""
    positions = [position for position, _ in view.reads]
    taken = sum(_fetch(state, target, view, at, terms, threads) for at in positions)
    if taken > target.gpu.shared_bytes_per_block:
        raise ValueError(f"{taken} bytes of shared memory are more than a block may have")


def _fetch(state, target, view, position, terms, threads):
    """Fetch an operand for all threads of a block; neighbouring threads fetch neighbours.

    terms: the loops around the fetch, inside those over blocks and threads. Returns the bytes of
    shared memory that the operand takes.
    """
    sch, dtype = state.sch, view.node.reads[position].source.dtype
    copy = sch.cache_read(view.rv, position, "shared")
    sch.compute_at(copy, terms[-1], preserve_unit_loops=True)
    own = fused(sch, sch.get_loops(copy)[3 + len(terms) :])
    size = extent(sch, own)
    widths = _widths(size, threads, dtype.itemsize, target.vector_bytes)
    width = state.choose("vector", widths, guess=len(widths) - 1, ordered=True)
    _, lane, vector = sch.split(own, [None, threads, width])
    bound(sch, [lane], "threadIdx.x")
    if width > 1:
        sch.vectorize(vector)
    state.finish(copy)
    return size * int(dtype.itemsize)


def _widths(size, threads, itemsize, most_bytes):
    """How many elements a thread may fetch at once so that all threads fetch equally many."""
    widths = (1, 2, 4, 8)
    even = [one for one in widths if one * itemsize <= most_bytes and size % (threads * one) == 0]
    return even or [1]
