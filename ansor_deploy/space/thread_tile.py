"""Sizes of a tile over the threads of a GPU, each chosen among those that what is left allows.

A block of threads computes a tile of the result, each of its threads some results in registers, and
fetches what a few terms of the sums need into memory that its threads share. What a size may be
follows from the sizes before it, so that nearly every answer gives a program within the limits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._tvm import tvm
from ..target import GpuLimits
from .block_view import REDUCE, SPATIAL, BlockView
from .state import State
from .tiles import divisors

# Results of one thread: its registers hold them, and what is multiplied to them.
MOST_RESULTS = 64
# What TVM's verifier of GPU programs allows by default: each multiplies the code of a thread.
MAX_VTHREADS = 8
# Results that lie side by side of one axis, and terms that are fetched at a time.
_INNERMOST, _MOST_TERMS = 8, 64
# Of a guess: threads of a block, those along one axis, results along one axis, and terms.
_THREADS, _SIDE, _RESULTS, _TERMS = 256, 16, 4, 8


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
    room = min(MAX_VTHREADS // vthreads, room // own)
    virtual = _pick(state, "vthreads", size // own, room, 1)
    left = size // own // virtual
    guess = min(_SIDE, _THREADS // threads)
    many = _pick(state, "threads", left, limits.max_threads_per_block // threads, guess)
    return SpatialTile(left // many, virtual, many, own)


def _pick(state: State, about: str, size: int, most: int, wanted: int) -> int:
    """A divisor of a size, `most` or less; the guess is the largest that is no more than wanted."""
    options = [one for one in divisors(size) if one <= max(1, most)]
    guess = max(at for at, one in enumerate(options) if one <= max(1, wanted))
    return state.choose(about, options, guess, ordered=True)


def _guessed_results(extents: Sequence[int], limits: GpuLimits) -> int:
    """Results of a thread along an axis: as many as leave a block to each multiprocessor."""
    for wanted in (_RESULTS, _RESULTS // 2):
        threads, blocks = _THREADS, 1
        for size in reversed(extents):
            own = max(d for d in divisors(size) if d <= wanted)
            many = max(d for d in divisors(size // own) if d <= min(threads, _SIDE))
            threads //= many
            blocks *= size // own // many
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


def vector_widths(size: int, threads: int, itemsize: int, most_bytes: int) -> list[int]:
    """How many elements threads may fetch at once, if they share them evenly, and all at once."""
    widths = (1, 2, 4, 8)
    even = [one for one in widths if one * itemsize <= most_bytes and size % (threads * one) == 0]
    return even or [1]
