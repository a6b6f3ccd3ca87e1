"""Sizes of a tile over the threads of a GPU; each is chosen among those that earlier ones allow.

A block of threads computes a tile of the result, and each thread some results in registers. The
block fetches the operands of a few terms of the sums into shared memory. The options of a size
depend on the sizes chosen before it, so nearly every answer gives a program within the limits.

Sizes need not divide the extents: for 197 rows, a thread may compute 4 and a tile may have 16
threads; the last tile is then partial. In that case each result has a condition, which costs a GPU
little.
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

# Most results of one thread: its registers hold them and their operands.
MOST_RESULTS = 64
# Most virtual threads: TVM's verifier of GPU programs allows as many. Each repeats a thread's code.
MAX_VTHREADS = 8
# Most neighbouring results of a thread along one axis.
_INNERMOST = 8
# Most terms that are fetched at a time.
_MOST_TERMS = 64
# Where a size does not divide an axis, at most this many times its results may be computed.
_MOST_PADDED = 4 / 3
# Fetching an operand into shared memory is of little use if it is read less often than this.
_FEW = 4
# A size that does not divide counts this much of one that does. It is a guess, not measured.
_CUT_SHORT = 0.5
# Threads of a block in a guess.
_THREADS = 256
# Threads along one axis in a guess.
_SIDE = 16
# Results of a thread along one axis in a guess.
_RESULTS = 4
# Terms that are fetched at a time in a guess.
_TERMS = 8

Fetch = Callable[[BlockView, Sequence[Any], int], None]


@dataclass(frozen=True)
class SpatialTile:
    """The tile of an axis: blocks of threads, virtual threads, threads, and results of a thread."""

    blocks: int
    vthreads: int
    threads: int
    results: int

    @property
    def size(self) -> int:
        """How many results a block of threads computes along the axis."""
        return self.vthreads * self.threads * self.results

    @property
    def factors(self) -> list[int]:
        """The extents of the axis's loops, outermost first."""
        return [self.blocks, self.vthreads, self.threads, self.results]


def tile_over_threads(
    state: State, block: str, target: Target, fetch: Fetch | None = None
) -> State:
    """Tile a contraction by SSSRRS over a GPU's threads, each with its own accumulators.

    fetch: copies operands into the shared memory of a block of threads; without it each thread
    reads its own. It gets the block's view, the loops over groups of terms, and how many threads a
    block has.
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
    """The limits of a target's GPU; TypeError for a target without one."""
    if target.gpu is None:
        raise TypeError(f"{target.name} has no GPU")
    return target.gpu


def hardly_reuses(view: BlockView, limits: GpuLimits) -> bool:
    """Whether a contraction reads its largest operand so rarely that threads should share sums.

    A product with a single row does, for instance. Sums shorter than a warp cannot be shared.
    """
    largest = math.prod(map(int, view.largest_operand[0].shape))
    results, terms = math.prod(view.spatial), math.prod(view.reduced)
    return view.is_contraction and terms >= limits.warp_size and results * terms < _FEW * largest


def _accumulated_locally(sch: Any, view: BlockView) -> Any:
    """Accumulate in registers. Returns the stage that writes them: the consumer if there is one."""
    if (consumer := view.epilogue) is None:
        return sch.cache_write(view.rv, 0, "local")
    sch.set_scope(view.rv, 0, "local")
    return consumer.rv


def choose_spatial(state: State, view: BlockView, limits: GpuLimits) -> list[SpatialTile]:
    """Choose the tile of each axis of the result; the last axis chooses first."""
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
    """Choose the tile of one axis.

    size: its extent. taken: virtual threads, threads and results of the axes that chose before.
    wanted: results of a thread in the guess.
    """
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
    """Choose a part of an extent, of at most `most`; the guess is at most `wanted`."""
    options = part_sizes(size, most)
    guess = options.index(_guess(size, min(most, wanted)))
    return state.choose(about, options, guess, ordered=True)


def part_sizes(size: int, most: int) -> list[int]:
    """Divisors of an extent, and powers of two that pad it by little; all at most `most`, or 1."""
    most = max(1, min(size, most))
    powers = (2**k for k in range(1, most.bit_length()))
    near = [one for one in powers if -(-size // one) * one <= _MOST_PADDED * size]
    return sorted({*near, *(one for one in divisors(size) if one <= most)})


def _guess(size: int, wanted: int) -> int:
    """The size that makes the fewest parts; one that does not divide the extent counts less."""
    worth = {
        one: size / -(-size // one) * (_CUT_SHORT if size % one else 1)
        for one in part_sizes(size, wanted)
    }
    return max(worth, key=lambda one: worth[one])


def _guessed_results(extents: Sequence[int], limits: GpuLimits) -> int:
    """Results of a thread along an axis: as many as leave each multiprocessor a block."""
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
    """Choose how many terms of each reducing axis are fetched at once; the last axis is first."""
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
    """Bytes of all operands that a tile reads. sizes: its extents, by the variables of its axes."""
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
