"""What all micro-kernels share: loops split into tiles, and a tile written out as vector code."""

from __future__ import annotations

import math
from typing import Any

from .._tvm import tirx
from ..marks.dot import STEPS, summed_at_once
from ..marks.long_dot import summed_by_sixteens
from ..marks.matrix_tiles import is_summed_by_matrices, summed_by_matrices
from ..marks.outside import PADDED, leaving_outside
from ..marks.partition import partitioned
from ..marks.tap_pairs import summed_by_pairs
from ..target import Target
from .block_view import BlockView
from .loops import extent, partition_columns, written_out
from .packing import WIDE, packed_steps, sums_pairs

# Channels of a tap from which it may be asked whether any of them is in the image.
WORTH_ASKING = 16


def split_tiles(
    sch: Any, view: BlockView, tile: tuple[int, ...], groups: int = 0
) -> tuple[list[Any], list[Any], list[Any]]:
    """A reduction's loops as (over tiles, within a tile, over what it reduces).

    Those over tiles are marked where the last one is cut short, and those over taps where some meet
    nothing but padding. Of steps that are summed up some at once, these are the last loop within a
    tile. groups: of four steps, that a matrix has.
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
    """What is reduced as loops (over matrices, within one): so many groups of four steps.

    Where the last axis alone has not so many, taps of the one before it lie side by side.
    """
    *outer, deep = reduced
    some, four = sch.split(deep, [None, STEPS])
    if extent(sch, some) % groups:
        some = sch.fuse(outer.pop(), some)
    over, some = sch.split(some, [None, groups])
    summed_by_matrices(sch, some)
    return [*outer, over], [some, four]


def is_mostly_padding(view: BlockView) -> bool:
    """Whether it multiplies floats of an image around which is at least as much padding.

    And enough of them at a tap to ask first. Of whole numbers padding may be others than zero.
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
    """A tile's reduction as straight vector code; the block that sets its accumulators to zero.

    start: the loop before which that is done.
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
    # A block without its init is no reduction any more: annotate first, then decompose.
    init = sch.decompose_reduction(view.rv, start)
    written_out(sch, init, len(tile), target)
    return init


def _written_out_by_pairs(sch: Any, around: list[Any], tile: list[Any]) -> None:
    """A tile of taps of bytes, a vector of them each; around: the loops around the tile's."""
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
    """Where the last tile has fewer columns, let lowering cut it off from all of a tile's blocks.

    extent: of the contiguous axis.
    """
    if extent % columns:
        for block in blocks:
            partition_columns(sch, block, columns)
