"""Transpose tile: a stage that reads along another axis than it writes goes tile by tile.

for c, h: b[c, h] = a[h, c]
-->
parallel c / T, h / T:
    for c % T / 8, h % T / 8: for c % 8, h % 8 (turned in registers): b[c, h] = a[h, c]

A tile uses all of a cache line while the line is in the cache. Row by row, a large image would
fetch each line again for each of its elements. Of what a tile reads and what it writes, the lines
of one lie farther apart and may all fall in one set of the cache: the inner loop goes along those.
"""

import math
from typing import NamedTuple

from ansor_deploy.space import SIDE, ApplyAndSkipRest, Pass, parallel, turned

NAME = "transpose-tile"
KINDS = ("llvm",)

# Sides of a tile: 16 elements of four bytes are a line of the cache.
SIDES = [16, 32, 8, 64]
# All lines of a stage with fewer elements than this stay in the first cache.
FEW = 1 << 12


class _Crossing(NamedTuple):
    """An operand that is contiguous along another axis than the result.

    axis: the number of that axis. read: how many elements apart the operand's lie along the
    result's last axis. written: how many elements apart the result's lie along `axis`.
    """

    axis: int
    read: int
    written: int


def applies(state, block, target):
    view = state.view(block)
    if reason := view.is_no_pass():
        return reason
    if math.prod(view.spatial) < FEW:
        return Pass("it is small")
    return ApplyAndSkipRest() if _crossing(view) else Pass("it reads along the axis that it writes")


def apply(state, block, target):
    sch, view = state.sch, state.view(block)
    crossing = _crossing(view)
    *outer, last = sch.get_loops(view.rv)[-len(view.spatial) :]
    side = state.choose("side", SIDES)
    pairs = (sch.split(loop, [None, side]) for loop in (outer[crossing.axis], last))
    (outer[crossing.axis], tall), (across, wide) = pairs
    along_reads = state.choose("order", [0, 1], guess=int(crossing.read > crossing.written))
    inner = []
    if _fits_registers(view, crossing.axis):
        tall, wide, *inner = turned(sch, tall, wide)
    sch.reorder(*outer, across, *([wide, tall] if along_reads else [tall, wide]), *inner)
    parallel(sch, [*outer, across])
    state.finish(view.rv)
    return [state]


def _fits_registers(view, axis):
    """Whether both axes hold a whole tile of 32-bit elements that can be turned in registers."""
    return view.bits == 32 and min(view.spatial[axis], view.spatial[-1]) >= SIDE


def _crossing(view):
    """The first operand that is contiguous along another axis than the result's; or None."""
    for *outer, last in view.steps if view.spatial else ():
        along = [at for at, step in enumerate(outer) if step == 1 and view.spatial[at] > 1]
        if along and last not in (None, 0, 1):
            return _Crossing(along[-1], last, math.prod(view.spatial[along[-1] + 1 :]))
    return None
