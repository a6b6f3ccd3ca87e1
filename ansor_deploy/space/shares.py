"""Shares of a long reduction: parts of it that cores sum up side by side.

    for k in range(K): s += f(k)
    -->
    parallel t: for k in range(ceil(K / T)) while t * ceil(K / T) + k < K: p[t] += f(..)
    s = sum of p

A number of shares need not divide the length: the last share is shorter. Lowering cuts the loop
over its steps off where it ends (`loops.partitioned`), so that no step asks.
"""

import math
from dataclasses import replace
from typing import Any

from ..target import Target
from .block_view import BlockView
from .cores import tile_tasks
from .tile_sizes import register_tiles

# Steps that a share should have, each of so many iterations: its partial results cost as well.
LEAST_STEPS = 4
# Numbers of shares offered, and how much less even than the best one may be.
OFFERED = 4
NEARLY_EVEN = 0.95


def shared_axis(view: BlockView) -> int:
    """Which reducing axis is cut: the longest, the outermost of equals."""
    return view.reduced.index(max(view.reduced))


def tile_count(view: BlockView, target: Target) -> int:
    """Register tiles of a result, of the size that one core would take."""
    alone, steps = replace(target, cores=1), [1] * len(view.node.iter_vars)
    tile, *_ = register_tiles(view, alone, steps) or [tuple(view.spatial)]
    return tile_tasks(view.spatial, tile)


def share_counts(view: BlockView, tasks: int, cores: int, step: int) -> list[int]:
    """Into how many shares to cut the reduction, ascending, the first as even as most; [1] if none.

    tasks: that there are without it. step: what the length of a share should be a multiple of.
    """
    length = max(view.reduced)
    most = min(2 * cores, length // (LEAST_STEPS * step))
    even = {count: _evenness(length, count, tasks, cores, step) for count in range(1, most + 1)}
    least = NEARLY_EVEN * max(even.values(), default=0)
    return [count for count, found in even.items() if found >= least][:OFFERED] or [1]


def split_shares(sch: Any, loop: Any, count: int, step: int) -> tuple[Any, Any]:
    """The loop as (over shares, in a share)."""
    share, inside = sch.split(loop, [None, _size(int(sch.get(loop).extent), count, step)])
    return share, inside


def _size(length: int, count: int, step: int) -> int:
    """Iterations of each share but the last."""
    return math.ceil(length / count / step) * step


def _evenness(length: int, count: int, tasks: int, cores: int, step: int) -> float:
    """Work of all cores over what it were if all had as much as the busiest."""
    size = _size(length, count, step)
    waves = math.ceil(tasks * math.ceil(length / size) / cores)
    return tasks * length / (cores * waves * size)
