"""The micro-kernel on strips: rows are padded a few at a time, just before they are read.

    for h, w, c: p[h, w, c] = pad(x) ; for h, w, c: for r, s: out[h, w, c] += p[h + r, w + s, c] * k
    -->
    parallel h / H, c / C:
        for H + r, w + s, C: p[..] = pad(x)
        for H, w / W: the register tile over W, C, its taps along a row written out

Padded as a whole, the input would go to memory and back; padded at each tap, a condition would
cost more the more taps there are. A strip stays in the cache.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._tvm import collect, tirx, tvm, uses
from ..marks.partition import partitioned
from ..marks.row_vectors import ROW_LANES, reading_vectors
from ..target import Target
from .block_view import SPATIAL, BlockView, divisions
from .cores import FAIR, busy
from .loops import (
    extent,
    inline_producers,
    is_marked,
    lanes,
    parallel,
    vectorized,
    written_out,
)
from .micro_kernel import cut_columns, split_tiles, write_out_tile
from .packing import pack_operands, panel_bytes
from .state import State
from .tile_sizes import FEW_TAPS, takes_lanes, tiles
from .tiles import divisors
from .window_tiles import window_tiles

# Multiply-adds with each element of the padded input, up to which strips pay.
FEW_USES = 512
# Bytes of padded input for each of panels from which strips pay: none of a panel is fetched ahead.
PANELS_WORTH = 2
# Of the second cache, what a strip may take; and what all panels may, which each strip reads.
STRIP_SHARE = 0.5
# Rows of its own that a strip has for each that it shares with the next.
REUSED = 2
# Most rows of a strip.
MOST_ROWS = 28
# Bytes of a panel's columns from which it is worth a strip of its own.
WIDE_PANEL = 32
# Multiply-adds, a vector each, that are written out.
MOST_WRITTEN = 256


def strips_pay(view: BlockView, target: Target) -> bool:
    """Whether its input is padded fastest in strips, most likely."""
    strips = Strips.of(view)
    if strips is None or (strips.has_own_columns and math.prod(view.reduced) <= FEW_TAPS):
        return False
    results, padded = math.prod(view.spatial), math.prod(strips.padding.spatial)
    tasks = math.prod(view.spatial[: strips.axis + 1])
    if not strips.has_own_columns and (tasks < 2 * target.cores or strips.has_large_panels(target)):
        return False
    few = results * math.prod(view.reduced) <= FEW_USES * padded or _pads_columns(strips.padding)
    large = strips.has_own_columns or padded * strips.padding.bits > 8 * target.l1_bytes
    return few and large


def tile_strips(state: State, view: BlockView, target: Target) -> None:
    """Tile a reduction of a padded input, strip by strip. ValueError where no tile fits."""
    sch, reduction, rank = state.sch, view.rv, len(view.spatial)
    (epilogue,) = view.consumers
    inline_producers(sch, epilogue.rv)
    strips = Strips.of(view)
    offered = strips.tiles(target) if strips else []
    if strips is None or not offered:
        raise ValueError("no tile fits the registers")
    tile = state.choose("register", offered, ordered=True)
    by_panels = strips.divides(tile) and state.choose(
        "span", [True, False], guess=int(strips.columns(tile) * view.bits < 8 * WIDE_PANEL)
    )
    rows = strips.rows(state, tile, by_panels, target)
    if view.is_contraction:
        pack_operands(state, view, tile[-1], target)
    outer, inner, reducing = split_tiles(sch, view, tile)
    vectors = math.prod(tile) // math.gcd(tile[-1], lanes(target, view.bits))
    most = MOST_WRITTEN if strips.moves_with_columns else 0
    reduced = _taps_written_out(state, reducing, vectors, most)
    if takes_lanes(view, tile, target):
        reduced = _by_lanes(sch, reduced)
    strip, last = _nested(sch, outer, (strips.axis, rows), by_panels, [*reduced, *inner])
    sch.reverse_compute_at(epilogue.rv, last, preserve_unit_loops=True)
    _pad(sch, strips.padding, strip, target)
    written_out(sch, epilogue.rv, rank, target)
    init = write_out_tile(sch, view, tile, reduced[0], target)
    cut_columns(sch, [init, reduction, epilogue.rv], view.spatial[-1], tile[-1])
    state.finish(init, reduction, epilogue.rv, strips.padding.rv)


@dataclass(frozen=True)
class Strips:
    """A reduction that reads a padded input, and the stage that pads it.

    axis: of the result; some of its rows make a strip.
    """

    view: BlockView
    padding: BlockView
    axis: int

    @classmethod
    def of(cls, view: BlockView) -> Strips | None:
        """The reduction with its padding; None where it has none, or a single row."""
        rank = len(view.spatial)
        for producer in view.producers:
            alone = not producer.producers and len(producer.consumers) == 1
            if alone and producer.calls(["if_then_else"]) and rank >= 4 and view.spatial[-2] > 1:
                return cls(view, producer, rank - 3)
        return None

    @property
    def has_own_columns(self) -> bool:
        """Whether each column reads a column of its own, as in a depthwise convolution."""
        column = self.view.axes(SPATIAL)[-1].var
        found = [index for index, _ in self._read if uses(index, column)]
        return bool(found) and not any(divisions(index, "FloorDiv") for index in found)

    @property
    def moves_with_columns(self) -> bool:
        """Whether columns, or groups of them, read columns of their own."""
        return self._extent(-1) > 1

    def has_large_panels(self, target: Target) -> bool:
        """Whether reading all panels for each strip costs more than padding the whole input."""
        padded = math.prod(self.padding.spatial) * self.padding.bits / 8
        room = min(padded / PANELS_WORTH, STRIP_SHARE * target.l2_bytes)
        return panel_bytes(self.view, self.view.spatial[-1]) > room

    def divides(self, tile: tuple[int, ...]) -> bool:
        """Whether each panel of columns reads other columns of the padded input."""
        return tile[-1] < self.view.spatial[-1] and self.moves_with_columns

    def columns(self, tile: tuple[int, ...]) -> float:
        """Columns of the padded input that a panel reads, of a grouped one as of a depthwise."""
        return self._extent(-1) * tile[-1] / self.view.spatial[-1]

    def tiles(self, target: Target) -> list[tuple[int, ...]]:
        """Sizes of register tiles, the best first."""
        found = window_tiles(self.view, target) if self.has_own_columns else []
        return found or tiles(self.view, target, [1] * len(self.view.node.iter_vars))

    def rows(self, state: State, tile: tuple[int, ...], by_panels: bool, target: Target) -> int:
        """How many rows of tiles make a strip.

        Enough that few inputs are padded twice, if a strip stays in the cache, and all cores busy.
        """
        size, spatial = tile[self.axis], self.view.spatial
        count = math.ceil(spatial[self.axis] / size)
        options = [d for d in divisors(count) if d <= MOST_ROWS]
        tasks, share = math.prod(spatial[: self.axis]) * count, 1.0
        if by_panels:
            tasks, share = tasks * math.ceil(spatial[-1] / tile[-1]), tile[-1] / spatial[-1]
        room = STRIP_SHARE * target.l2_bytes / share
        fit = [0, *(at for at, rows in enumerate(options) if tasks >= 2 * target.cores * rows)]
        fit = [at for at in fit if at == 0 or self._bytes(options[at] * size) <= room]
        fit = [at for at in fit if busy(tasks // options[at], target.cores) >= FAIR] or fit
        stride, shared = self._step
        enough = [at for at in fit if options[at] * size * stride >= REUSED * shared]
        return state.choose("strip", options, guess=min(enough, default=fit[-1]), ordered=True)

    def _bytes(self, rows: int) -> float:
        """Bytes of the padded input that so many rows of the result read."""
        stride, shared = self._step
        whole = math.prod(self.padding.spatial[1:]) * self.padding.bits / 8
        return whole * min(1.0, (rows * stride + shared) / self._extent(self.axis))

    @property
    def _step(self) -> tuple[int, int]:
        """Rows of the padded input from a row of the result to the next, and that both read."""
        padded, results = self._extent(self.axis), self.view.spatial[self.axis]
        stride = max(1, padded // results)
        return stride, max(0, padded - results * stride)

    def _extent(self, axis: int) -> int:
        """Extent of the padded input along which an axis of the result moves; else 1."""
        var = self.view.axes(SPATIAL)[axis].var
        return max((size for index, size in self._read if uses(index, var)), default=1)

    @property
    def _read(self) -> list[tuple[Any, int]]:
        """The indices at which the padded input is read, with its extents."""
        (made,) = [region.source for region in self.padding.node.writes]
        return [
            pair
            for source, indices in self.view.operands
            if source.same_as(made)
            for pair in zip(indices, self.padding.spatial, strict=True)
        ]


def _taps_written_out(state: State, reduced: list[Any], vectors: int, most: int) -> list[Any]:
    """The reducing loops, the innermost of them written out: a row of taps, or all.

    vectors: of a tile. most: multiply-adds that the guess writes out.
    """
    sizes = [extent(state.sch, loop) for loop in reduced]
    written = [math.prod(sizes[len(sizes) - count :]) * vectors for count in range(len(sizes) + 1)]
    options = [count for count, size in enumerate(written) if size <= 2 * MOST_WRITTEN] or [0]
    fit = max(at for at, count in enumerate(options) if at == 0 or written[count] <= most)
    count = state.choose("taps", options, guess=fit, ordered=True)
    for loop in reduced[len(reduced) - count :]:
        state.sch.unroll(loop)
    return reduced


def _by_lanes(sch: Any, reduced: list[Any]) -> list[Any]:
    """The reducing loops, the innermost in steps that read rows as vectors."""
    *outer, last = reduced
    if sch.get(last).kind != tirx.ForKind.UNROLLED:
        over, last = sch.split(last, [None, ROW_LANES])
        sch.unroll(last)
        outer.append(over)
    reading_vectors(sch, last)
    return [*outer, last]


def _nested(
    sch: Any, outer: list[Any], strip: tuple[int, int], by_panels: bool, inside: list[Any]
) -> tuple[Any, Any]:
    """Bring the loops in order: (the loop over strips, the innermost over tiles).

    strip: the axis and how many of its tiles make one.
    """
    axis, rows = strip
    block, row = sch.split(outer[axis], [None, rows])
    *others, panels = outer
    tasks, inner = [*others[:axis], block], [row, *others[axis + 1 :]]
    apart = by_panels and is_marked(sch, panels)
    if by_panels and not apart:
        tasks = [*tasks, panels]
    else:
        inner = [panels, *inner]
    sch.reorder(*tasks, *inner, *inside)
    task = parallel(sch, tasks)
    if not apart:
        return task, inner[-1]
    sch.parallel(panels)  # lowering joins them (`codegen/passes/tile_tasks.py`)
    return panels, inner[-1]


def _pad(sch: Any, padding: BlockView, strip: Any, target: Target) -> None:
    """Pad each strip where it is read, without a condition where nothing is added to a row."""
    sch.compute_at(padding.rv, strip, preserve_unit_loops=True)
    *_, row, column = sch.get_loops(padding.rv)
    if _pads_columns(padding):
        partitioned(sch, column)  # LLVM makes vectors of the part that is only moved
    else:
        partitioned(sch, row)
        vectorized(sch, column, target, padding.bits)


def _pads_columns(padding: BlockView) -> bool:
    """Whether something is added along the contiguous axis."""
    column = padding.axes(SPATIAL)[-1].var
    conditions = [call.args[0] for call in collect(padding.node.body, tvm.ir.Call) if call.args]
    return any(uses(condition, column) for condition in conditions)
