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

from ansor_deploy.space import SIDE, SIDE_OF_BYTES, ApplyAndSkipRest, Pass, parallel, turned

NAME = "transpose-tile"
KINDS = ("llvm",)

# Sides of a tile: 16 elements of four bytes are a line of the cache.
SIDES = [16, 32, 8, 64]
# The shorter side of a tile that fits registers, where an axis has fewer elements than that.
LEAST = 4
# All lines of a stage with fewer elements than this stay in the first cache.
FEW = 1 << 12


class _Crossing(NamedTuple):
    """An operand that is contiguous along another axis than the result.

    axis: the number of that axis. read: how many elements apart the operand's lie along the
    result's last axis. written: how many elements apart the result's lie along `axis`. bits: of an
    element of the operand.
    """

    axis: int
    read: int
    written: int
    bits: int


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
    fewest = min(view.spatial[crossing.axis], view.spatial[-1])
    guess = SIDE if LEAST <= fewest < SIDES[0] else SIDES[0]
    side = state.choose("side", SIDES, guess=SIDES.index(guess))
    pairs = (sch.split(loop, [None, side]) for loop in (outer[crossing.axis], last))
    (outer[crossing.axis], tall), (across, wide) = pairs
    along_reads = state.choose("order", [0, 1], guess=int(crossing.read > crossing.written))
    inner = []
    if held := _in_registers(view, crossing, side):
        tall, wide, *inner = turned(sch, tall, wide, held)
    sch.reorder(*outer, across, *([wide, tall] if along_reads else [tall, wide]), *inner)
    parallel(sch, [*outer, across])
    state.finish(view.rv)
    return [state]


def _in_registers(view, crossing, side):
    """How many elements a tile that is turned in registers has along each axis; 0 for no tile."""
    if view.bits > 32:
        return 0
    held = min(side, SIDE_OF_BYTES if crossing.bits == 8 else SIDE)
    while held > min(view.spatial[crossing.axis], view.spatial[-1]):
        held //= 2
    return held if held >= LEAST else 0


def _crossing(view):
    """The first operand that is contiguous along another axis than the result's; or None."""
    steps = view.steps if view.spatial else ()
    for (*outer, last), (operand, _) in zip(steps, view.operands, strict=False):
        along = [at for at, step in enumerate(outer) if step == 1 and view.spatial[at] > 1]
        if along and last not in (None, 0, 1):
            apart = math.prod(view.spatial[along[-1] + 1 :])
            return _Crossing(along[-1], last, apart, operand.dtype.bits)
    return None
