"""Steps that all micro-kernels share: loops are split into tiles, and a tile into vector code."""

from __future__ import annotations

import math
from typing import Any

from .._tvm import tirx
from ..marks.dot import STEPS, summed_at_once
from ..marks.long_dot import summed_by_sixteens
from ..marks.matrix_tiles import is_summed_by_matrices, summed_by_matrices
from ..marks.outside import PADDED, WORTH_ASKING, leaving_outside
from ..marks.partition import partitioned
from ..marks.tap_pairs import summed_by_pairs
from ..target import Target
from .block_view import BlockView
from .loops import extent, partition_columns, written_out
from .packing import WIDE, packed_steps, sums_pairs


def split_tiles(
    sch: Any, view: BlockView, tile: tuple[int, ...], groups: int = 0
) -> tuple[list[Any], list[Any], list[Any]]:
    """Split a reduction's loops into (over tiles, within a tile, reducing).

    A loop over tiles is partitioned where the last tile is smaller. A loop over taps is marked
    where some taps meet nothing but padding. Steps that one instruction sums up are the last loop
    within a tile. groups: how many groups of four steps a matrix has; 0 without matrices.
    """
    extents, loops = view.spatial, sch.get_loops(view.rv)
    reduced = loops[len(tile) :]
    for loop in reduced[:-1] if is_mostly_padding(view) else []:
        leaving_outside(sch, loop)
    pairs = [sch.split(loop, [None, size]) for loop, size in zip(loops, tile, strict=False)]
    for (outer, _), whole, size in zip(pairs, extents, tile, strict=True):
        if whole % size:
            partitioned(sch, outer)
    inner = [inner for _, inner in pairs]
    if groups:
        reduced, within = _split_groups(sch, reduced, groups)
        inner += within
    elif count := packed_steps(view):
        reduced[-1], steps = sch.split(reduced[-1], [None, count])
        (summed_at_once if count <= STEPS else summed_by_sixteens)(sch, steps)
        inner.append(steps)
    return [outer for outer, _ in pairs], inner, reduced


def _split_groups(sch: Any, reduced: list[Any], groups: int) -> tuple[list[Any], list[Any]]:
    """Split the reducing loops into (over matrices, within a matrix: `groups` by four steps).

    Where the last axis alone has too few steps, it is fused with the axis before it, whose taps are
    contiguous.
    """
    *outer, deep = reduced
    some, four = sch.split(deep, [None, STEPS])
    if extent(sch, some) % groups:
        some = sch.fuse(outer.pop(), some)
    over, some = sch.split(some, [None, groups])
    summed_by_matrices(sch, some)
    return [*outer, over], [some, four]


def is_mostly_padding(view: BlockView) -> bool:
    """Whether a block multiplies a float image that has at least as much padding around it.

    False also where a tap has too few channels to test it first, and for integers, whose padding
    need not be zero.
    """
    (written,) = [region.source for region in view.node.writes]
    asks = view.is_contraction and written.dtype == "float32" and view.reduced[-1] >= WORTH_ASKING
    if not asks or (made := view.padding) is None:
        return False
    images = [math.prod(map(int, image.shape)) for image, _ in made.operands]
    return len(images) == 1 and math.prod(made.spatial) >= PADDED * images[0]


def write_out_tile(
    sch: Any, view: BlockView, tile: tuple[int, ...], start: Any, target: Target
) -> Any:
    """Turn a tile's reduction into straight vector code. Returns its initialising block.

    start: the loop before which the accumulators are set to zero.
    """
    steps, loops = packed_steps(view), sch.get_loops(view.rv)
    if is_summed_by_matrices(sch, loops):
        pass
    elif steps > STEPS:
        for loop in loops[-1 - len(tile) : -1]:
            sch.unroll(loop)
    elif sums_pairs(view, target):
        _written_out_by_pairs(sch, loops[: -len(tile)], loops[-len(tile) :])
    else:
        written_out(sch, view.rv, len(tile), target, loops[-1:] if steps else [])
    # Annotate before decomposing: without its init the block is no reduction any more.
    init = sch.decompose_reduction(view.rv, start)
    written_out(sch, init, len(tile), target)
    return init


def _written_out_by_pairs(sch: Any, around: list[Any], tile: list[Any]) -> None:
    """Unroll a tile of byte taps, in vectors of WIDE columns. around: the loops around the tile."""
    *rows, columns = tile
    vectors, lanes = sch.split(columns, [None, math.gcd(WIDE, extent(sch, columns))])
    for loop in [*rows, vectors]:
        if extent(sch, loop) > 1:
            sch.unroll(loop)
    sch.vectorize(lanes)
    kinds = [sch.get(loop).kind for loop in around]
    written = [at for at, kind in enumerate(kinds) if kind == tirx.ForKind.UNROLLED]
    if written:
        summed_by_pairs(sch, around[written[0]])


def cut_columns(sch: Any, blocks: list[Any], extent: int, columns: int) -> None:
    """Let lowering cut off the last tile's missing columns in all blocks of a tile.

    extent: the number of columns in all tiles.
    """
    if extent % columns:
        for block in blocks:
            partition_columns(sch, block, columns)
