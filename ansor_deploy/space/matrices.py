"""Tile sizes for processors that multiply matrices of bytes (`marks/matrix_tiles.py`).

A matrix register has sixteen rows, and sixteen columns or groups of four steps; a tile has one to
three registers each way. An instruction takes as many cycles as it has rows, or groups of steps,
whichever are more; meanwhile others read the next operands. Two by two registers keep a processor
busy, and few steps leave it idle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from .._tvm import uses
from ..marks.dot import STEPS
from ..marks.matrix_tiles import REGISTERS, SIDE, has_matrices
from ..target import Target
from .block_view import REDUCE, BlockView, factor
from .cores import FAIR, busy, tile_tasks, worth_cores
from .packing import has_own_taps, rows_and_weights
from .tile_sizes import WORST, batch_axes, columns_of_groups, indexing_axes, parts_of
from .tiles import divisors

# Fewest rows that are worth a matrix.
LEAST_ROWS = 4
# Fewest steps in a register that are worth a matrix.
LEAST_STEPS = 16
# Fewest steps of a whole sum that are worth a matrix, whose sums must go through memory before the
# epilogue. Measured against vectors: 24 and 32 steps took 1.0 to 1.6 times as long, 64 took 0.73.
LEAST_DEPTH = 64
# Cycles to read a register; a row of products takes one cycle.
READ = 10
# Cycles for the work that is done once for a tile.
ONCE = 100
# Most registers of a tile each way.
MOST = 3
# How many tiles are offered to the search.
OFFERED = 16


def sums_matrices(view: BlockView, target: Target) -> bool:
    """Whether matrices are the best way to compute a reduction of bytes."""
    if not has_matrices(target) or not view.is_contraction or not rows_and_weights(view, target):
        return False
    own = batch_axes(view)
    rows = math.prod(size for at, size in enumerate(view.spatial[:-1]) if at not in own)
    whole = view.reduced[-1] % STEPS == 0 and STEPS * groups_of_steps(view) >= LEAST_STEPS
    enough = rows >= LEAST_ROWS and math.prod(view.reduced) >= LEAST_DEPTH
    return enough and whole and not has_own_taps(view) and not columns_of_groups(view)


def groups_of_steps(view: BlockView) -> int:
    """How many groups of four steps a register holds: the most that divide contiguous steps."""
    last = view.reduced[-1] // STEPS
    sizes = {*divisors(last), *divisors(last * _taps_beside(view))}
    return max(size for size in sizes if size <= SIDE)


def _taps_beside(view: BlockView) -> int:
    """How many taps in a row of a kernel read channels that are contiguous; 1 where none do."""
    *_, tap, deep = [None, *view.axes(REDUCE)]
    for buffer, indices in view.operands if tap is not None else []:
        if str(buffer.dtype) == "uint8" and len(indices) > 1:
            *before, place, channel = indices
            whole = channel.same_as(deep.var) and int(buffer.shape[-1]) == view.reduced[-1]
            alone = not any(uses(index, tap.var) for index in before)
            if whole and alone and uses(place, tap.var) and factor(place, tap.var) == 1:
                return view.reduced[-2]
    return 1


def matrix_sizes(view: BlockView, target: Target, width: int = 0) -> list[tuple[int, ...]]:
    """Tile sizes of the result's axes, the fastest first.

    width: results of an image's row, where the rows are fused into one axis and read places that
    are not at equal distances; else 0.
    """
    cores, costs = max(1, worth_cores(view, target)), {}
    for rows, count in product(_row_sizes(view, width), range(1, MOST + 1)):
        tile = (*rows, count * SIDE)
        high = len(_registers_of(rows, width))
        fits = high * count + high + count <= REGISTERS
        if fits and (count - 1) * SIDE < view.spatial[-1]:
            shared = min(FAIR, busy(tile_tasks(view.spatial, tile), cores))
            costs[tile] = _cost(view, tile, width) / shared
    found = sorted(costs, key=lambda tile: (costs[tile], tile))
    return [tile for tile in found if WORST * costs[tile] <= costs[found[0]]][:OFFERED]


def _row_sizes(view: BlockView, width: int) -> Iterator[tuple[int, ...]]:
    """Sizes of a tile along all axes but the contiguous one.

    Along the last of these axes, any size is possible that is made of whole rows of an image or
    divides one. Where it is the whole axis, a tile may have several steps of the axis before it.
    """
    *before, last = view.spatial[:-1]
    reused = any(not used[len(before) - 1] for used in indexing_axes(view)) if before else False
    for size in range(1, min(last, MOST * SIDE) + 1):
        if width and width % size and size % width:
            continue
        for above in range(1, MOST + 1 if reused and size == last else 2):
            if not before or before[-1] % above == 0:
                yield (*(1 for _ in before[1:]), *([above] if before else []), size)


def _registers_of(rows: Sequence[int], width: int) -> list[int]:
    """How many rows each register of a tile has. rows: the tile's size along each axis."""
    *before, last = rows
    line = min(width or last, last)
    lines, parts = math.prod(before) * math.ceil(last / line), math.ceil(line / SIDE)
    return [line * (at + 1) // parts - line * at // parts for at in range(parts)] * lines


def _cost(view: BlockView, tile: Sequence[int], width: int) -> float:
    """Cycles that all tiles take; the last one of an axis may be smaller."""
    groups = groups_of_steps(view)
    steps, total = math.prod(view.reduced) // (groups * STEPS), 0.0
    for parts in product(*map(parts_of, view.spatial, tile)):
        high = _registers_of([size for _, size in parts[:-1]], width)
        wide = math.ceil(parts[-1][1] / SIDE)
        products = wide * sum(max(rows, groups) for rows in high)
        step = max(products, READ * (len(high) + wide))
        total += math.prod(count for count, _ in parts) * (ONCE + steps * step)
    return total
