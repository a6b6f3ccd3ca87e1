"""Sizes of a tile over the threads of a GPU, each chosen among those that what is left allows.

A block of threads computes a tile of the result, each of its threads some results in registers, and
fetches what a few terms of the sums need into memory that its threads share. What a size may be
follows from the sizes before it, so that nearly every answer gives a program within the limits.

Sizes need not divide the extents: of 197 rows a thread may compute 4, and 16 threads share a tile,
of which the last is cut short. Then each result has a condition, which GPUs ask at little cost.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._tvm import tvm
from ..target import GpuLimits, Target
from .block_view import REDUCE, SPATIAL, BlockView
from .loops import bound, split_levels, unrolled
from .state import State
from .tiles import divisors

# Results of one thread: its registers hold them, and what is multiplied to them.
MOST_RESULTS = 64
# What TVM's verifier of GPU programs allows by default: each multiplies the code of a thread.
MAX_VTHREADS = 8
# Results that lie side by side of one axis, and terms that are fetched at a time.
_INNERMOST, _MOST_TERMS = 8, 64
# How many times the results there are may be computed of an axis, where a size does not divide it.
_MOST_PADDED = 4 / 3
_FEW = 4  # times that an operand is read: then to fetch it together is of little use
_CUT_SHORT = 0.5  # what a size that does not divide is worth of one that does: a guess, unmeasured
# Of a guess: threads of a block, those along one axis, results along one axis, and terms.
_THREADS, _SIDE, _RESULTS, _TERMS = 256, 16, 4, 8

Fetch = Callable[[BlockView, Sequence[Any], int], None]


@dataclass(frozen=True)
class SpatialTile:
    """Of one axis: blocks of threads, virtual threads, threads, and results side by side."""

    blocks: int
    vthreads: int
    threads: int
    results: int

    @property
    def size(self) -> int:
        """Results of a block of threads."""
        return self.vthreads * self.threads * self.results

    @property
    def factors(self) -> list[int]:
        """Extents of the loops, outermost first."""
        return [self.blocks, self.vthreads, self.threads, self.results]


def tile_over_threads(
    state: State, block: str, target: Target, fetch: Fetch | None = None
) -> State:
    """A contraction by SSSRRS over the threads of a GPU, each with its own accumulators.

    fetch: brings operands to where the threads of a block share them; without it each thread reads
    them by itself. It is given the block's view, the loops over few terms each, and the threads.
    """
    sch, view, limits = state.sch, state.view(block), limits_of(target)
    tiles = choose_spatial(state, view, limits)
    terms = choose_terms(state, view, tiles, limits)
    reduced = [[size // step, step] for size, step in zip(view.reduced, terms, strict=True)]
    write = _accumulated_locally(sch, view)
    levels = split_levels(sch, view.rv, "SSSRRS", [one.factors for one in tiles], reduced)
    for level, axis in zip(levels, ("blockIdx.x", "vthread.x", "threadIdx.x"), strict=False):
        bound(sch, level, axis)
    sch.reverse_compute_at(write, sch.get_loops(view.rv)[2], preserve_unit_loops=True)
    if fetch:
        fetch(view, levels[3], math.prod(one.threads for one in tiles))
    unrolled(state, sch.get_loops(view.rv)[0], [0, 16, 64, 512], guess=1, ordered=True)
    init = sch.decompose_reduction(view.rv, levels[3][0])
    state.finish(view.rv, init, write)
    return state


def limits_of(target: Target) -> GpuLimits:
    """What a target's GPU allows; TypeError for a target without one."""
    if target.gpu is None:
        raise TypeError(f"{target.name} has no GPU")
    return target.gpu


def hardly_reuses(view: BlockView, limits: GpuLimits) -> bool:
    """Whether a contraction reads its largest operand so few times that threads best share sums.

    As a product with one row does. Of short sums there is nothing to share.
    """
    largest = math.prod(map(int, view.largest_operand[0].shape))
    results, terms = math.prod(view.spatial), math.prod(view.reduced)
    return view.is_contraction and terms >= limits.warp_size and results * terms < _FEW * largest


def _accumulated_locally(sch: Any, view: BlockView) -> Any:
    """Accumulate in registers; the stage that writes them out, the consumer if there is one."""
    if (consumer := view.epilogue) is None:
        return sch.cache_write(view.rv, 0, "local")
    sch.set_scope(view.rv, 0, "local")
    return consumer.rv


def choose_spatial(state: State, view: BlockView, limits: GpuLimits) -> list[SpatialTile]:
    """The tile of each axis of the result, the last axis first to choose."""
    results = _guessed_results(view.spatial, limits)
    found: list[SpatialTile] = []
    for size in reversed(view.spatial):
        taken = [math.prod(getattr(one, what) for one in found) for what in _KINDS]
        found.append(_tile(state, size, taken, results, limits))
    return found[::-1]


_KINDS = ("vthreads", "threads", "results")


def _tile(
    state: State, size: int, taken: Sequence[int], wanted: int, limits: GpuLimits
) -> SpatialTile:
    """taken: virtual threads, threads and results of the axes before. wanted: results."""
    vthreads, threads, results = taken
    room = MOST_RESULTS // (vthreads * results)
    own = _pick(state, "registers", size, min(_INNERMOST, room), wanted)
    room, left = min(MAX_VTHREADS // vthreads, room // own), -(-size // own)
    whole = [one for one in divisors(left) if one <= max(1, room)]
    virtual = state.choose("vthreads", whole, ordered=True)
    left //= virtual
    guess = min(_SIDE, _THREADS // threads)
    many = _pick(state, "threads", left, limits.max_threads_per_block // threads, guess)
    return SpatialTile(-(-left // many), virtual, many, own)


def _pick(state: State, about: str, size: int, most: int, wanted: int) -> int:
    """A part of an extent, `most` or less; the guess is no more than wanted."""
    options = part_sizes(size, most)
    guess = options.index(_guess(size, min(most, wanted)))
    return state.choose(about, options, guess, ordered=True)


def part_sizes(size: int, most: int) -> list[int]:
    """Divisors of an extent, and powers of two that exceed it by little, up to `most`, or 1."""
    most = max(1, min(size, most))
    powers = (2**k for k in range(1, most.bit_length()))
    near = [one for one in powers if -(-size // one) * one <= _MOST_PADDED * size]
    return sorted({*near, *(one for one in divisors(size) if one <= most)})


def _guess(size: int, wanted: int) -> int:
    """The part that leaves the fewest of them, where those that are cut short count less."""
    worth = {
        one: size / -(-size // one) * (_CUT_SHORT if size % one else 1)
        for one in part_sizes(size, wanted)
    }
    return max(worth, key=lambda one: worth[one])


def _guessed_results(extents: Sequence[int], limits: GpuLimits) -> int:
    """Results of a thread along an axis: as many as leave a block to each multiprocessor."""
    for wanted in (_RESULTS, _RESULTS // 2):
        threads, blocks = _THREADS, 1
        for size in reversed(extents):
            own = _guess(size, wanted)
            left = -(-size // own)
            many = _guess(left, min(threads, _SIDE))
            threads //= many
            blocks *= -(-left // many)
        if blocks >= limits.sms:
            return wanted
    return 1


def choose_terms(
    state: State, view: BlockView, tiles: Sequence[SpatialTile], limits: GpuLimits
) -> list[int]:
    """How many terms of each reducing axis are fetched at a time; the last axis chooses first."""
    sizes = {axis.var: 1 for axis in view.axes(REDUCE)}
    sizes |= {a.var: t.size for a, t in zip(view.axes(SPATIAL), tiles, strict=True)}
    found, left = [], _MOST_TERMS
    for axis in reversed(view.axes(REDUCE)):
        fits = [
            one
            for one in divisors(int(axis.dom.extent))
            if one <= left
            and shared_bytes(view, {**sizes, axis.var: one}) <= limits.shared_bytes_per_block
        ]
        options = fits or [1]
        guess = max(at for at, one in enumerate(options) if one <= _TERMS or at == 0)
        sizes[axis.var] = state.choose("terms", options, guess, ordered=True)
        left //= sizes[axis.var]
        found.append(sizes[axis.var])
    return found[::-1]


def shared_bytes(view: BlockView, sizes: dict[Any, int]) -> int:
    """Bytes of all operands that a tile of these extents reads, by the variables of its axes."""
    known = tvm.sym.Analyzer()
    for var, size in sizes.items():
        known.bind(var, tvm.ir.Range(0, size))
    operands = [(view.node.reads[at].source, indices) for at, indices in view.reads]
    return sum(
        math.prod(_range(known, index) for index in indices) * buffer.dtype.itemsize
        for buffer, indices in operands
    )


def _range(known: Any, index: Any) -> int:
    bound = known.const_int_bound(index)
    return int(bound.max_value) - int(bound.min_value) + 1
