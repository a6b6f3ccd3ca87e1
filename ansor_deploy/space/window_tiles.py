"""Sizes of register tiles for windows that slide over channels of their own (depthwise).

A row of taps is written out, so that neighbouring results share the inputs between them:

    acc[w, C] += x[w * stride + s * dilation, C] * k[s, C]        for all w of the tile, s

Compilers keep those inputs in registers from their first use to their last, so a tile has room
for its accumulators, its inputs and a vector of the kernel. One that is larger spills both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._tvm import collect, tirx, uses
from ..target import Target
from .block_view import REDUCE, SPATIAL, BlockView
from .loops import lanes

# Tiles offered to the search, the best first.
OFFERED = 8
# Widest tile, in vectors.
MAX_VECTORS = 2
# Results along a row from which sharing inputs pays: with fewer, multiply-adds wait for each other.
SMALLEST = 4


def window_tiles(view: BlockView, target: Target) -> list[tuple[int, ...]]:
    """Tile sizes of the result's axes, the fewest loads a multiply-add first; none of a long row.

    A row of taps that leaves no room for some results beside their inputs is not written out.
    """
    window, columns = _Window.of(view), view.spatial[-1]
    lane = lanes(target, view.bits)
    width = lane if columns > lane else math.gcd(columns, lane)
    scored = []
    for vectors in range(1, min(MAX_VECTORS, math.ceil(columns / width)) + 1):
        for size in range(min(SMALLEST, window.results), window.results + 1):
            if vectors * (size + window.inputs(size) + 1) <= target.vector_registers:
                score = window.cost(size, vectors) * _waste(columns, vectors * width)
                scored.append((score, (*[1] * (len(view.spatial) - 2), size, vectors * width)))
    scored.sort()
    return [tile for _, tile in scored[:OFFERED]]


def dilation(view: BlockView) -> int:
    """By how many elements the taps of a block's window are apart, where that is most."""
    rows, taps = view.axes(SPATIAL), view.axes(REDUCE)
    images = [
        index
        for _, indices in view.operands
        for index in indices
        if any(uses(index, row.var) for row in rows)
    ]
    return max((_factor(index, tap.var) for index in images for tap in taps), default=1)


def _waste(columns: int, panel: int) -> float:
    """Columns that are computed for each that is there."""
    return math.ceil(columns / panel) * panel / columns


@dataclass(frozen=True)
class _Window:
    """A row of taps. results: along the last row axis. taps: of the row."""

    results: int
    taps: int
    stride: int
    dilation: int

    @classmethod
    def of(cls, view: BlockView) -> _Window:
        """The window along the last row axis of a block."""
        row = view.axes(SPATIAL)[-2]
        for _, indices in view.operands:
            for index in indices:
                moving = [axis for axis in view.axes(REDUCE) if uses(index, axis.var)]
                if uses(index, row.var) and moving:
                    (tap, *_) = moving
                    steps = [_factor(index, axis.var) for axis in (row, tap)]
                    return cls(int(row.dom.extent), int(tap.dom.extent), *steps)
        return cls(int(row.dom.extent), 1, 1, 1)

    def inputs(self, size: int) -> int:
        """Different inputs that so many results read."""
        reads = {w * self.stride + s * self.dilation for w in range(size) for s in range(self.taps)}
        return len(reads)

    def cost(self, size: int, vectors: int) -> float:
        """What a row of taps takes for all results: multiply-adds and loads, a vector each."""
        parts = [(self.results // size, size), (1, self.results % size)]
        whole = sum(n * (own * self.taps + self.inputs(own) + self.taps) for n, own in parts if own)
        return whole * (1 if self.results % size == 0 else 1.05)


def _factor(index: Any, var: Any) -> int:
    """By what a variable is multiplied in an index."""
    for product in collect(index, tirx.Mul):
        if product.a.same_as(var) and isinstance(product.b, tirx.IntImm):
            return int(product.b.value)
    return 1
