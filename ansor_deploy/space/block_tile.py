"""The tile of a product with blockwise weights: integer sums in a block, float sums across blocks.

for r, c: for b: for k: sums[r, b, c] += q[r, b, k] * weight[b, k, c]
                 out[r, c] += float(sums[r, b, c]) * scale[r, b, c]
-->
parallel c / C, r / R:
    for R, C: acc[R, C] = 0
    for b:
        for R, C: sums[R, C] = 0
        for k / 4: for R, C: sums[R, C] += four products             in registers
        for R, C: acc[R, C] += float(sums[R, C]) * scale[R, C]
    for R, C: y[R, C] = epilogue(acc[R, C])
"""

from __future__ import annotations

import math
from typing import Any

from ..marks.dot import STEPS
from ..marks.streamed import streaming
from ..marks.word_dot import summed_by_words
from ..target import Target
from .block_view import BlockView
from .cores import shared
from .loops import extent, inline_producers, lanes, written_out
from .micro_kernel import cut_columns, split_tiles, write_out_tile
from .packing import pack_operands
from .state import State

# How many vectors a tile's columns may fill.
VECTORS = (4, 3, 2, 1)
# Registers kept free beside two sums for each vector and one weight vector.
SPARE = 1
# Instructions for each vector of a block besides its sums: a conversion, a scale and an addition.
SCALED = 3
# Instructions to unpack EIGHT steps of a vector of weights: a load, a shift and two masks.
UNPACKED = 4
EIGHT = 2 * STEPS
# How many groups of four steps are unrolled.
WRITTEN = 8
# How many tiles are offered to the search.
OFFERED = 8


def block_sums(view: BlockView) -> BlockView | None:
    """The stage with a block's integer sums, which a reduction adds up; None without one.

    It multiplies bytes by weights in 32-bit words.
    """
    found = [one for one in view.producers if one.is_contraction and _by_words(one)]
    same = len(found) == 1 and [*found[0].spatial[:-2], found[0].spatial[-1]] == view.spatial
    return found[0] if same and found[0].spatial[-2:-1] == view.reduced else None


def _by_words(view: BlockView) -> bool:
    kinds = sorted(str(buffer.dtype) for buffer, _ in view.operands)
    return kinds == ["int32", "int8"] and len(view.reduced) == 1 and view.reduced[0] % STEPS == 0


def tile_block_sums(state: State, view: BlockView, target: Target) -> None:
    """Tile a product with blockwise weights, and its epilogue. ValueError for another block."""
    sch, sums = state.sch, block_sums(view)
    if sums is None:
        raise ValueError("it adds up no sums of blocks")
    (epilogue,) = view.consumers
    inline_producers(sch, epilogue.rv)
    tile = state.choose("register", _tiles(view, sums.reduced[0], target), ordered=True)
    for one in (sums, view):
        pack_operands(state, one, tile[-1], target)
    outer, inner, (block,) = split_tiles(sch, view, tile)
    order = [*outer[:-2], outer[-1], outer[-2]] if len(outer) > 1 else outer
    sch.reorder(*order, block, *inner)
    if extent(sch, order[-1]) == 1 and state.choose("stream", [False, True]):
        streaming(sch, block)
    task = shared(sch, order, target.cores)
    sch.reverse_compute_at(epilogue.rv, task, preserve_unit_loops=True)
    sch.compute_at(sums.rv, block, preserve_unit_loops=True)
    started = _write_out(state, sums, target)
    written_out(sch, epilogue.rv, len(tile), target, columns=tile[-1])
    init = write_out_tile(sch, view, tile, block, target)
    made = [init, view.rv, epilogue.rv, started, sums.rv]
    cut_columns(sch, made, view.spatial[-1], tile[-1])
    state.finish(*made)


def _tiles(view: BlockView, size: int, target: Target) -> list[tuple[int, ...]]:
    """Sizes of tiles that fit the registers, the fewest instructions for all sums first.

    size: the steps of a block.
    """
    *lead, columns = view.spatial
    rows, width = lead[-1] if lead else 1, lanes(target)

    def cost(tile: tuple[int, int]) -> float:
        height, wide = tile
        each = height * (size / STEPS + SCALED) + UNPACKED * size / EIGHT
        return math.ceil(rows / height) * math.ceil(columns / wide) * (wide // width) * each

    found = [
        (height, count * width)
        for count in VECTORS
        for height in _heights(rows, (target.vector_registers - SPARE - count) // (2 * count))
    ]
    found.sort(key=lambda tile: (cost(tile), -tile[1]))
    return [(*[1] * (len(lead) - 1), *tile)[-len(view.spatial) :] for tile in found][:OFFERED]


def _heights(rows: int, room: int) -> list[int]:
    """Options for a tile's rows: as many as there is room for, or the same number in all tiles."""
    most = min(rows, room)
    return sorted({most, math.ceil(rows / math.ceil(rows / most))})


def _write_out(state: State, sums: BlockView, target: Target) -> Any:
    """Turn the sums of a block into straight vector code. Returns the stage that zeroes them."""
    sch, rank = state.sch, len(sums.spatial)
    sch.set_scope(sums.rv, 0, "local")
    *loops, steps = sch.get_loops(sums.rv)
    own = loops[-rank:]
    groups, four = sch.split(steps, [None, STEPS])
    over, written = sch.split(groups, [None, math.gcd(extent(sch, groups), WRITTEN)])
    sch.reorder(over, written, *own, four)
    summed_by_words(sch, four)
    sch.unroll(written)
    written_out(sch, sums.rv, rank, target, [four])
    init = sch.decompose_reduction(sums.rv, over)
    written_out(sch, init, rank, target)
    return init
