"""How many cores a stage is worth, and how evenly its tasks occupy them."""

import math
from collections.abc import Sequence

from ..target import Target
from .block_view import BlockView

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
