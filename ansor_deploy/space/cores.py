"""How many cores a stage is worth, and how evenly its tasks occupy them."""

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from ..target import Target
from .block_view import BlockView
from .loops import extent, is_marked

# A core should read at least this many elements; with fewer, waking it costs more than it saves.
WORTH_A_CORE = 1 << 14
# This many multiply-adds of a contraction take as long as reading one element of a reduction.
ADDS_AN_ELEMENT = 8
# Cores that are busy for this part of the time are busy enough; then other things decide.
FAIR = 0.9


def worth_cores(view: BlockView, target: Target) -> int:
    """How many cores a reduction has enough work for; 0 where it has too little even for one."""
    read = sum(math.prod(map(int, region.source.shape)) for region in view.node.reads)
    adds = math.prod(view.spatial + view.reduced)
    work = max(read, adds // ADDS_AN_ELEMENT) if view.is_contraction else adds
    return min(target.cores, work // WORTH_A_CORE)


def tile_tasks(extents: Sequence[int], tile: Sequence[int]) -> int:
    """How many tiles a result consists of, each a task."""
    return math.prod(-(-whole // size) for whole, size in zip(extents, tile, strict=True))


def busy(tasks: int, cores: int) -> float:
    """The part of the time in which cores are busy, with tasks of equal length."""
    return tasks / (math.ceil(tasks / cores) * cores)


def keeps_busy(tasks: int, cores: int) -> bool:
    """Whether cores are busy most of the time, with tasks of equal length."""
    return busy(tasks, cores) >= FAIR


def shared(sch: Any, outer: list[Any], cores: int) -> Any:
    """Share the outer loops among the cores. Returns the innermost of them.

    The loops before the first partitioned one are fused. A partitioned loop cannot be fused: as
    many of these as the cores need are made parallel, and lowering joins them
    (`codegen/passes/tile_tasks.py`).
    """
    whole = list(takewhile(lambda loop: not is_marked(sch, loop), outer))
    loops = [*([sch.fuse(*whole)] if whole else []), *outer[len(whole) :]]
    count = 1
    for loop in loops:
        if count > 1 and keeps_busy(count, cores):
            break
        sch.parallel(loop)
        count *= extent(sch, loop)
    return loops[-1]
