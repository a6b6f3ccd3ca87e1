"""Where short weights are made float32: in each load, or once for many tiles of rows."""

import math
from typing import Any

from ..marks.widened_panels import widening
from ..target import Target
from .block_view import BlockView
from .cores import keeps_busy
from .loops import extent
from .packing import made_float32
from .state import State

# Tiles of rows from which it pays that they share a panel, and from which that costs nothing.
FEW, MANY = 2, 8
# Rows from which all weights are made float32 before the tiles, where few tiles share a panel.
MANY_ROWS = 128
# Of all second caches, what these may take.
SHARE = 0.5


def widen_once(
    state: State, view: BlockView, around: list[Any], within: list[Any], target: Target
) -> None:
    """Let tiles of rows share short weights as float32, which is a choice.

    around: the loops over tiles down to the last that chooses a panel. within: the others, whose
    tiles share it.
    """
    loop = _shared_in(state.sch, view, around, within, target)
    if loop is not None and state.choose("widen", [True, False]):
        widening(state.sch, loop)


def _shared_in(
    sch: Any, view: BlockView, around: list[Any], within: list[Any], target: Target
) -> Any:
    """The loop whose tiles share weights, of a panel or all of them; None where few tiles would.

    A panel is one core's.
    """
    weights = max((math.prod(map(int, b.shape)) for b in made_float32(view)), default=0)
    if not weights:
        return None
    wide = [[loop for loop in loops if extent(sch, loop) > 1] for loops in (around, within)]
    tasks, tiles = (math.prod(extent(sch, loop) for loop in loops) for loops in wide)
    shared = tiles if keeps_busy(tasks, target.cores) else 1
    rows = math.prod([*view.spatial, *view.reduced]) // weights
    fit = rows >= MANY_ROWS and 4 * weights <= SHARE * target.l2_bytes * target.cores
    found = wide[0] + wide[1] if shared < MANY and fit else wide[1] if shared >= FEW else []
    return found[0] if found else None
