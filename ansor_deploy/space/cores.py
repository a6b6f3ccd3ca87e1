"""How many cores a stage is worth, and how evenly its tasks occupy them."""

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from ..target import Target
from .block_view import BlockView
from .loops import extent, is_marked

# Elements that a core should read at least: below, waking another costs more than it saves.
WORTH_A_CORE = 1 << 14
# Multiply-adds of a contraction that take as long as one element that is only read.
ADDS_AN_ELEMENT = 8
# The part of the time in which cores have a task from which on other things decide.
FAIR = 0.9


def worth_cores(view: BlockView, target: Target) -> int:
    """How many cores have enough to do with a reduction; 0 where not even one has."""
    read = sum(math.prod(map(int, region.source.shape)) for region in view.node.reads)
    adds = math.prod(view.spatial + view.reduced)
    work = max(read, adds // ADDS_AN_ELEMENT) if view.is_contraction else adds
    return min(target.cores, work // WORTH_A_CORE)


def tile_tasks(extents: Sequence[int], tile: Sequence[int]) -> int:
    """How many tiles a result takes, each a task."""
    return math.prod(-(-whole // size) for whole, size in zip(extents, tile, strict=True))


def busy(tasks: int, cores: int) -> float:
    """The part of the time in which a core has one of equally long tasks."""
    return tasks / (math.ceil(tasks / cores) * cores)


def keeps_busy(tasks: int, cores: int) -> bool:
    """Whether cores have one of equally long tasks most of the time: then other things decide."""
    return busy(tasks, cores) >= FAIR


def shared(sch: Any, outer: list[Any], cores: int) -> Any:
    """Share the outer loops among the cores; the innermost of them.

    They are fused up to the first that is cut in two, which can only be done to a loop by itself:
    lowering joins those (`codegen/passes/tile_tasks.py`), of which there are as many as the cores
    need.
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
