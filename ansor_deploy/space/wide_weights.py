"""Where short weights are widened: in each load, or once for many tiles of rows."""

import math
from typing import Any

from ..marks.widened_panels import widening
from ..target import Target
from .block_view import BlockView
from .cores import keeps_busy
from .loops import extent
from .packing import made_float32, made_words
from .state import State

# Sharing a widened panel pays from this many tiles of rows.
FEW = 2
# From this many tiles of rows, widening a panel costs nothing that matters.
MANY = 8
# Where fewer tiles share a panel, all weights are widened before the tiles from this many rows.
MANY_ROWS = 128
# Part of all second caches that all widened weights may take.
SHARE = 0.5


def widen_once(
    state: State, view: BlockView, around: list[Any], within: list[Any], target: Target
) -> None:
    """Choose whether tiles of rows share short weights that are widened once.

    around: the loops over tiles down to the last one that selects a panel. within: the other loops
    over tiles, which share the panel.
    """
    loop = _shared_in(state.sch, view, around, within, target)
    if loop is not None and state.choose("widen", [True, False]):
        widening(state.sch, loop)


def _shared_in(
    sch: Any, view: BlockView, around: list[Any], within: list[Any], target: Target
) -> Any:
    """The loop whose tiles share widened weights, a panel or all; None where too few tiles would.

    A panel is shared only if it belongs to one core.
    """
    words = made_words(view, target)
    short, item = (words, 2) if words else (made_float32(view), 4)
    weights = max((math.prod(map(int, b.shape)) for b in short), default=0)
    if not weights:
        return None
    wide = [[loop for loop in loops if extent(sch, loop) > 1] for loops in (around, within)]
    tasks, tiles = (math.prod(extent(sch, loop) for loop in loops) for loops in wide)
    shared = tiles if keeps_busy(tasks, target.cores) else 1
    rows = math.prod([*view.spatial, *view.reduced]) // weights
    fit = rows >= MANY_ROWS and item * weights <= SHARE * target.l2_bytes * target.cores
    found = wide[0] + wide[1] if shared < MANY and fit else wide[1] if shared >= FEW else []
    return found[0] if found else None
