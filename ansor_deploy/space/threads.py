"""The loops of a GPU: blocks, threads, and shared memory, for the rules and the annotation."""

from __future__ import annotations

import math
from typing import Any

from .._tvm import tvm
from ..target import GpuLimits, Target
from . import blocks as b
from . import loops as l
from .state import State, divisors

# SSSRRSRS: blocks, virtual threads, threads, two serial levels; and the reductions around them.
SPATIAL, REDUCING = 5, 3
# Widest innermost tile of an axis.
INNERMOST = 8
# What TVM's verifier of GPU programs allows by default: each multiplies the code of a thread.
MAX_VTHREADS = 8
# Threads of a block where a stage is one pass over its results.
THREADS = (64, 128, 256, 512)
UNROLL = (0, 16, 64, 512)


def tile(state: State, block: Any, target: Target) -> None:
    """Tile a contraction, each thread with its own accumulators.

    ValueError if the sizes chosen are more than a block may have.
    """
    sch, limits = state.sch, _limits(target)
    reads = _shareable(sch, block)
    write = _local_accumulators(sch, block)
    loops = sch.get_loops(block)
    rank = len(b.spatial_vars(sch.get(block)))
    guesses = _guesses([l.extent(sch, loop) for loop in loops[:rank]], limits)
    spatial = [
        state.sample_tile(loop, SPATIAL, INNERMOST, guess)
        for loop, guess in zip(loops[:rank], guesses, strict=True)
    ]
    reducing = [
        state.sample_tile(loop, REDUCING, INNERMOST, _reduced_guess(l.extent(sch, loop)))
        for loop in loops[rank:]
    ]
    s0, s1, s2, s3, s4 = (list(level) for level in zip(*spatial, strict=True))
    r0, r1, r2 = (list(level) for level in zip(*reducing, strict=True))
    sch.reorder(*s0, *s1, *s2, *r0, *r1, *s3, *r2, *s4)
    if math.prod(l.extent(sch, loop) for loop in s1) > MAX_VTHREADS:
        raise ValueError("more virtual threads than are worth it")
    threads = _bound(sch, s0, s1, s2)
    count = l.extent(sch, threads)
    if count > limits.max_threads_per_block:
        raise ValueError(f"{count} threads are more than a block may have")
    sch.reverse_compute_at(write, threads, preserve_unit_loops=True)
    shared = 0
    for position in reads:
        copy, size = _shared(sch, block, position, r0[-1], count)
        shared += size
        state.done.add(copy)
    if shared > limits.shared_bytes_per_block:
        raise ValueError(f"{shared} bytes of shared memory are more than a block may have")
    _unroll(state, sch.get_loops(block)[0])
    init = sch.decompose_reduction(block, r0[0])
    state.done |= {str(sch.get(made).name_hint) for made in (block, init, write)}


def _local_accumulators(sch: Any, block: Any) -> Any:
    """Accumulate in registers; the stage that writes them out, the consumer if there is one."""
    if (consumer := l.epilogue(sch, block)) is None:
        return sch.cache_write(block, 0, "local")
    sch.set_scope(block, 0, "local")
    return consumer


def _limits(target: Target) -> GpuLimits:
    if target.gpu is None:
        raise ValueError(f"target {target.name} is no GPU")
    return target.gpu


def _shareable(sch: Any, block: Any) -> list[int]:
    """Positions of the operands: each buffer once, the block's own result left out."""
    node = sch.get(block)
    read = [buffer for buffer, _ in b.operands(node)]
    return [
        at
        for at, region in enumerate(node.reads)
        if any(region.source.same_as(buffer) for buffer in read)
    ]


def _guesses(extents: list[int], limits: GpuLimits) -> list[list[int]]:
    """Two results of the last axes for each thread, and up to a quarter of the threads allowed."""
    left, guesses = limits.max_threads_per_block // 4, []
    for extent in reversed(extents):
        inner = math.gcd(extent, 2)
        threads = max(d for d in divisors(extent // inner) if d <= min(left, 16))
        left //= threads
        guesses.append([extent // inner // threads, 1, threads, 1, inner])
    return guesses[::-1]


def _reduced_guess(extent: int) -> list[int]:
    """Some eight terms of each reduction in shared memory at a time."""
    step = max(d for d in divisors(extent) if d <= INNERMOST)
    return [extent // step, 1, step]


def _bound(sch: Any, *levels: list[Any]) -> Any:
    """The levels as blockIdx.x, vthread.x and threadIdx.x; the last of them."""
    for loops, axis in zip(levels, ("blockIdx.x", "vthread.x", "threadIdx.x"), strict=True):
        fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
        sch.bind(fused, axis)
    return fused


def _shared(sch: Any, block: Any, position: int, place: Any, threads: int) -> tuple[str, int]:
    """Fetch an operand for all threads of a block, neighbours by neighbours; its name and bytes."""
    dtype = str(sch.get(block).reads[position].source.dtype)
    copy = sch.cache_read(block, position, "shared")
    sch.compute_at(copy, place, preserve_unit_loops=True)
    own = sch.get_loops(copy)[_depth(sch, copy, place) :]
    fused = sch.fuse(*own) if len(own) > 1 else own[0]
    size = l.extent(sch, fused) * tvm.DataType(dtype).bits // 8
    _, lane = sch.split(fused, [None, threads])
    sch.bind(lane, "threadIdx.x")
    return str(sch.get(copy).name_hint), size


def _depth(sch: Any, stage: Any, place: Any) -> int:
    """How many loops of a stage are those around a place, itself included."""
    around = sch.get(place)
    return next(
        at for at, loop in enumerate(sch.get_loops(stage), start=1) if sch.get(loop).same_as(around)
    )


def _unroll(state: State, outermost: Any) -> None:
    if steps := state.choose("unroll", UNROLL, guess=1):
        state.sch.annotate(outermost, "pragma_auto_unroll_max_step", steps)
        state.sch.annotate(outermost, "pragma_unroll_explicit", True)


def bind_map(state: State, block: Any, target: Target) -> None:
    """A stage of which no thread needs another: its results in blocks of threads."""
    sch = state.sch
    rank = len(b.spatial_vars(sch.get(block)))
    loops = sch.get_loops(block)[:rank] or [sch.add_unit_loop(block)]
    fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    most = _limits(target).max_threads_per_block
    size = state.choose("parallel", [min(size, most) for size in THREADS], guess=2)
    group, thread = sch.split(fused, [None, min(size, l.extent(sch, fused))])
    sch.bind(group, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
