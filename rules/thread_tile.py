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

import math

from ansor_deploy.space import ApplyAndSkipRest, bound, divisors, extent, fused, tiled, unrolled

NAME = "thread-tile"
KINDS = ("cuda",)

# Widest innermost tile of an axis.
INNERMOST = 8
# What TVM's verifier of GPU programs allows by default: each multiplies the code of a thread.
MAX_VTHREADS = 8


def applies(state, block, target):
    view = state.view(block)
    return view.reuses_nothing() or view.is_single_number() or ApplyAndSkipRest()


def apply(state, block, target):
    """Each thread with its own accumulators; ValueError if the sizes are more than it may have."""
    sch, limits, view = state.sch, target.gpu, state.view(block)
    reads = [position for position, _ in view.reads]
    write = _accumulated_locally(sch, view)
    guesses = [*_guesses(view.spatial, limits), *map(_reduced_guess, view.reduced)]
    s0, s1, s2, r0, *_ = tiled(state, view, "SSSRRSRS", INNERMOST, guesses)
    if math.prod(extent(sch, loop) for loop in s1) > MAX_VTHREADS:
        raise ValueError("more virtual threads than are worth it")
    bound(sch, s0, "blockIdx.x")
    bound(sch, s1, "vthread.x")
    threads = bound(sch, s2, "threadIdx.x")
    count = extent(sch, threads)
    if count > limits.max_threads_per_block:
        raise ValueError(f"{count} threads are more than a block may have")
    sch.reverse_compute_at(write, threads, preserve_unit_loops=True)
    shared = sum(_share(state, view, position, r0, count) for position in reads)
    if shared > limits.shared_bytes_per_block:
        raise ValueError(f"{shared} bytes of shared memory are more than a block may have")
    unrolled(state, sch.get_loops(view.rv)[0], [0, 16, 64, 512], guess=1, ordered=True)
    init = sch.decompose_reduction(view.rv, r0[0])
    state.finish(view.rv, init, write)
    return [state]


def _guesses(extents, limits):
    """Two results of the last axes for each thread, and up to a quarter of the threads allowed."""
    left, guesses = limits.max_threads_per_block // 4, []
    for size in reversed(extents):
        inner = math.gcd(size, 2)
        threads = max(d for d in divisors(size // inner) if d <= min(left, 16))
        left //= threads
        guesses.append([size // inner // threads, 1, threads, 1, inner])
    return guesses[::-1]


def _reduced_guess(size):
    """Some eight terms of each reduction in shared memory at a time."""
    step = max(d for d in divisors(size) if d <= INNERMOST)
    return [size // step, 1, step]


def _accumulated_locally(sch, view):
    """Accumulate in registers; the stage that writes them out, the consumer if there is one."""
    if (consumer := view.epilogue) is None:
        return sch.cache_write(view.rv, 0, "local")
    sch.set_scope(view.rv, 0, "local")
    return consumer.rv


def _share(state, view, position, steps, threads):
    """Fetch an operand for all threads of a block, neighbours by neighbours; its bytes.

    steps: the loops around the fetching, within those over blocks and threads.
    """
    sch, dtype = state.sch, view.node.reads[position].source.dtype
    copy = sch.cache_read(view.rv, position, "shared")
    sch.compute_at(copy, steps[-1], preserve_unit_loops=True)
    own = fused(sch, sch.get_loops(copy)[3 + len(steps) :])
    size = extent(sch, own) * dtype.bits // 8
    _, lane = sch.split(own, [None, threads])
    bound(sch, [lane], "threadIdx.x")
    state.finish(copy)
    return size
