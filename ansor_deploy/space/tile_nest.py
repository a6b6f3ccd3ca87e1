"""The order of a reduction's loops over tiles, the parallel tasks, and what tiles prefetch."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._tvm import tirx
from ..marks.added_prefetch import fetching_added
from ..marks.prefetch import prefetching, prefetching_rows
from ..marks.streamed import streaming
from ..target import Target
from .block_view import BlockView
from .cores import keeps_busy, shared
from .loops import extent, is_marked
from .packing import in_words, made_float32, panel_elements
from .state import State
from .tile_sizes import batch_axes
from .wide_weights import widen_once

# Part of the second cache that panels may take; the rows that are multiplied need room as well.
PANEL_SHARE = 0.5
# Axes of widened data whose rows are one list, regardless of where an image's row ends.
ROW = 2


class Tiles(NamedTuple):
    """A reduction cut into tiles: their sizes and its loops.

    outer: the loops over tiles. inner: the loops within a tile. parts: the loop over parts of the
    sums, if there are any. reduced: the other reducing loops. groups: groups of steps that a matrix
    takes, else 0. is_packed: whether there are panels of constant weights. blocks: of rows, in each
    of which the guess has all panels; 0 where it has rows outermost; the first that is possible
    counts. crosses: whether a tile may begin in one row of an image and end in the next, so that
    tiles read different amounts.
    """

    sizes: tuple[int, ...]
    outer: list[Any]
    inner: list[Any]
    parts: list[Any]
    reduced: list[Any]
    groups: int
    is_packed: bool
    blocks: tuple[int, ...]
    crosses: bool


class Nest(NamedTuple):
    """The loop of a task, and the loop in which the epilogue writes a tile's results.

    is_wide: whether a task computes all panels, for rows that it widens once.
    """

    task: Any
    results: Any
    is_wide: bool = False


def nested(
    state: State, view: BlockView, epilogue: BlockView, target: Target, tiles: Tiles
) -> Nest:
    """Order the loops of a reduction that was cut into tiles, and make parallel tasks of them."""
    if tiles.parts:
        return _by_parts(state, view, target, tiles)
    nest = _by_tiles(state, view, target, tiles)
    if _adds_a_tensor(view, epilogue):
        fetching_added(state.sch, nest.task)
    return nest


def _by_parts(state: State, view: BlockView, target: Target, tiles: Tiles) -> Nest:
    """Make each panel a task: all rows use one part of the panel before the next part."""
    *rows, task = tiles.outer
    state.sch.reorder(task, *tiles.parts, *rows, *tiles.reduced, *tiles.inner)
    if tiles.is_packed:
        widen_once(state, view, [task, *tiles.parts], rows, target)
    state.sch.parallel(task)
    return Nest(task, task)


def _by_tiles(state: State, view: BlockView, target: Target, tiles: Tiles) -> Nest:
    """Sum up whole tiles, in an order that is a choice; a task computes some of them."""
    sch, panels = state.sch, tiles.outer[-1]
    order = _ordered(state, tiles.outer, batch_axes(view), tiles.blocks, target)
    sch.reorder(*order, *tiles.reduced, *tiles.inner)
    if tiles.is_packed:
        _read_panels(state, view, order, tiles, target)
    is_wide = order[-1] is panels and _widens_rows(
        state, view, order[:-1], target, crosses=tiles.crosses
    )
    if not is_wide and len(view.spatial) > 1:
        _fetch_rows(state, view, order, tiles.sizes[-2], target)
    task = shared(sch, order[:-1] if is_wide else order, target.cores)
    return Nest(task, order[-1] if is_wide else task, is_wide)


def _read_panels(
    state: State, view: BlockView, order: list[Any], tiles: Tiles, target: Target
) -> None:
    """Widen panels once for the rows that share them, and prefetch them."""
    panels, at = tiles.outer[-1], order.index(tiles.outer[-1]) + 1
    widen_once(state, view, order[:at], order[at:], target)
    _fetch_ahead(state, order, panels, panel_elements(view, tiles.sizes[-1]), target)
    _fetch_steps(state, view, [*order[: at - 1], *order[at:]], tiles.reduced, target)


def _ordered(
    state: State, outer: list[Any], own: list[int], blocks: Sequence[int], target: Target
) -> list[Any]:
    """Choose the order of the loops over tiles: panels outermost, rows outermost, or by blocks.

    With panels outermost, a packed panel is reused for all rows while it is in the cache. With
    blocks of rows, the rows of a block stay in the cache as well. own: positions of loops that have
    panels of their own; these are always outermost. blocks: as in `Tiles`.
    """
    sch, panels = state.sch, outer[-1]
    batch = [outer[at] for at in own]
    rows = [loop for at, loop in enumerate(outer[:-1]) if at not in own]
    wide = next((loop for loop in rows if extent(sch, loop) > 1), None)
    if extent(sch, panels) == 1 and not batch:
        return outer
    if extent(sch, panels) == 1 or wide is None:
        return [*batch, panels, *rows]
    tiles = 0 if is_marked(sch, wide) else extent(sch, wide)
    several = [some for some in sorted({2, target.cores}) if 1 < some < tiles and tiles % some == 0]
    options = [1, 0, *several]
    guess = next(options.index(one) for one in blocks if one in options)
    count = state.choose("order", options, guess)
    if count == 0:
        return [*batch, *rows, panels]
    if count == 1:
        return [*batch, panels, *rows]
    block, row = sch.split(wide, [count, None])
    return [*batch, block, panels, *[row if loop is wide else loop for loop in rows]]


def _fetch_ahead(state: State, order: list[Any], panels: Any, panel: int, target: Target) -> None:
    """Choose whether the tiles of rows that share a panel prefetch the next panel.

    panel: elements of a panel.
    """
    sch, at = state.sch, order.index(panels) + 1
    rows = [loop for loop in order[at:] if extent(sch, loop) > 1]
    count = math.prod(extent(sch, loop) for loop in order[:at])
    if len(rows) != 1 or count < 2 * target.cores or not keeps_busy(count, target.cores):
        return
    if state.choose("prefetch", [True, False]):
        prefetching(sch, rows[0], panel)


def _fetch_steps(
    state: State, view: BlockView, rows: list[Any], reduced: list[Any], target: Target
) -> None:
    """Choose whether steps prefetch the weights of later steps.

    It is offered for weights shorter than float32 that one row uses, and for weights in words that
    one tile of rows uses. For float32 a processor prefetches enough itself: there, prefetching cost
    4% when measured. rows: the loops over tiles of rows.
    """
    sch = state.sch
    serial = [loop for loop in reduced if sch.get(loop).kind == tirx.ForKind.SERIAL]
    several = math.prod(view.spatial[:-1]) > 1
    weights = [*([] if several else made_float32(view)), *in_words(view)]
    short = max((math.prod(map(int, b.shape)) for b in weights), default=0)
    tiles = math.prod(extent(sch, loop) for loop in rows)
    if short <= target.l1_bytes or not serial or tiles > 1:
        return
    if state.choose("stream", [True, False]):
        streaming(sch, serial[-1])


def _fetch_rows(state: State, view: BlockView, order: list[Any], size: int, target: Target) -> None:
    """Choose whether each tile of rows prefetches the next tile's rows.

    It is offered where the second cache does not hold all rows. The rows must be contiguous, and
    each tile must be complete before the next begins. size: rows of a tile.
    """
    sch, depth = state.sch, math.prod(view.reduced)
    elements = math.prod(view.spatial[:-1]) * depth
    read = {math.prod(map(int, region.source.shape)): region.source for region in view.node.reads}
    wide = [loop for loop in order if extent(sch, loop) > 1]
    if elements not in read or batch_axes(view):
        return
    if elements * read[elements].dtype.itemsize <= PANEL_SHARE * target.l2_bytes:
        return
    outside = len(wide) == 1 or (len(wide) == 2 and wide[1] is order[-1])
    count = extent(sch, wide[0]) if outside else 0
    if count < 2 * target.cores or not keeps_busy(count, target.cores):
        return
    if state.choose("ahead", [True, False]):
        prefetching_rows(sch, wide[0], size * depth)


def _widens_rows(
    state: State, view: BlockView, rows: list[Any], target: Target, *, crosses: bool
) -> bool:
    """Choose whether each tile of rows is widened by itself, once for all panels.

    crosses: whether tiles begin and end in different rows of an image.
    """
    widened = [one for one in view.producers if one.widens_bytes]
    tiles = math.prod(extent(state.sch, loop) for loop in rows)
    apart = crosses and any(len(one.spatial) > ROW for one in widened)
    if not widened or tiles == 1 or apart:
        return False
    idle = not keeps_busy(tiles, target.cores)
    return state.choose("rows", [True, False], guess=int(idle))


def _adds_a_tensor(view: BlockView, epilogue: BlockView) -> bool:
    """Whether the epilogue reads another tensor as large as its result, such as a residual."""
    (made,) = [region.source for region in view.node.writes]
    others = [buffer for buffer, _ in epilogue.operands if not buffer.same_as(made)]
    return any(math.prod(map(int, one.shape)) >= math.prod(view.spatial) for one in others)
