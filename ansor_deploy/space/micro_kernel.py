"""What all micro-kernels share: loops split into tiles, and a tile written out as vector code."""

from __future__ import annotations

from typing import Any

from ..marks.dot import STEPS, summed_by_fours
from ..marks.partition import partitioned
from ..target import Target
from .block_view import BlockView
from .loops import partition_columns, written_out
from .packing import is_by_fours


def split_tiles(
    sch: Any, view: BlockView, tile: tuple[int, ...]
) -> tuple[list[Any], list[Any], list[Any]]:
    """A reduction's loops as (over tiles, within a tile, over what it reduces).

    Those over tiles are marked where the last one is cut short. Of steps that are summed up by
    fours, the four are the last loop within a tile.
    """
    extents, loops = view.spatial, sch.get_loops(view.rv)
    reduced = loops[len(tile) :]
    pairs = [sch.split(loop, [None, size]) for loop, size in zip(loops, tile, strict=False)]
    for (outer, _), whole, size in zip(pairs, extents, tile, strict=True):
        if whole % size:
            partitioned(sch, outer)
    four = []
    if is_by_fours(view):
        reduced[-1], steps = sch.split(reduced[-1], [None, STEPS])
        summed_by_fours(sch, steps)
        four = [steps]
    return [outer for outer, _ in pairs], [*(inner for _, inner in pairs), *four], reduced


def write_out_tile(
    sch: Any, view: BlockView, tile: tuple[int, ...], start: Any, target: Target
) -> Any:
    """A tile's reduction as straight vector code; the block that sets its accumulators to zero.

    start: the loop before which that is done.
    """
    four = sch.get_loops(view.rv)[-1:] if is_by_fours(view) else []
    written_out(sch, view.rv, len(tile), target, four)
    # A block without its init is no reduction any more: annotate first, then decompose.
    init = sch.decompose_reduction(view.rv, start)
    written_out(sch, init, len(tile), target)
    return init


def cut_columns(sch: Any, blocks: list[Any], extent: int, columns: int) -> None:
    """Where the last tile has fewer columns, let lowering cut it off from all of a tile's blocks.

    extent: of the contiguous axis.
    """
    if extent % columns:
        for block in blocks:
            partition_columns(sch, block, columns)
