"""Shares of a long reduction: parts of it that cores sum up in parallel.

    for k in range(K): s += f(k)
    -->
    parallel t: for k in range(ceil(K / T)) while t * ceil(K / T) + k < K: p[t] += f(..)
    s = sum of p

The number of shares need not divide the length: the last share is shorter. Lowering makes separate
code for that share (`loops.partitioned`), so that no step has a condition.
"""

import math
from dataclasses import replace
from typing import Any

from ..target import Target
from .block_view import BlockView
from .cores import tile_tasks
from .tile_sizes import register_tiles

# A share should have this many steps, since its partial results cost something as well.
LEAST_STEPS = 4
# How many numbers of shares are offered.
OFFERED = 4
# An offered number is at least this part as even as the most even one.
NEARLY_EVEN = 0.95


def shared_axis(view: BlockView) -> int:
    """The index of the reducing axis that is cut: the longest, and the outermost of equals."""
    return view.reduced.index(max(view.reduced))


def tile_count(view: BlockView, target: Target) -> int:
    """How many register tiles a result has, with tiles of the best size for one core."""
    alone, steps = replace(target, cores=1), [1] * len(view.node.iter_vars)
    tile, *_ = register_tiles(view, alone, steps) or [tuple(view.spatial)]
    return tile_tasks(view.spatial, tile)


def share_counts(view: BlockView, tasks: int, cores: int, step: int) -> list[int]:
    """The numbers of shares to offer, ascending; [1] where the reduction is too short.

    Each number occupies the cores nearly as evenly as the best one does. tasks: the tasks without
    shares. step: the length of a share should be a multiple of this.
    """
    length = max(view.reduced)
    most = min(2 * cores, length // (LEAST_STEPS * step))
    even = {count: _evenness(length, count, tasks, cores, step) for count in range(1, most + 1)}
    least = NEARLY_EVEN * max(even.values(), default=0)
    return [count for count, found in even.items() if found >= least][:OFFERED] or [1]


def split_shares(sch: Any, loop: Any, count: int, step: int) -> tuple[Any, Any]:
    """Split a loop into (over shares, in a share)."""
    share, inside = sch.split(loop, [None, _size(int(sch.get(loop).extent), count, step)])
    return share, inside


def _size(length: int, count: int, step: int) -> int:
    """Iterations of each share but the last."""
    return math.ceil(length / count / step) * step


def _evenness(length: int, count: int, tasks: int, cores: int, step: int) -> float:
    """The work of all cores, divided by what they could do while the busiest core works."""
    size = _size(length, count, step)
    waves = math.ceil(tasks * math.ceil(length / size) / cores)
    return tasks * length / (cores * waves * size)
