"""The order of a reduction's loops over tiles, what tasks they make, and what they fetch ahead."""

import math
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
from .widening import widen_once

# Of the second cache, what panels may take: all rows pass by them, and want some as well.
PANEL_SHARE = 0.5
# Axes of what has been widened as one row after the other, wherever a row of an image ends.
ROW = 2


class Tiles(NamedTuple):
    """A reduction cut into tiles: their sizes, and its loops over tiles, in one, and over sums.

    parts: the loop over parts of its sums, if there are any. groups: of steps that a matrix takes,
    else 0. is_packed: whether panels of weights are. rows_outside: which loops are tried outermost
    first. crosses: whether a tile begins in one row of an image and ends in the next, and so reads
    now more, now less of it.
    """

    sizes: tuple[int, ...]
    outer: list[Any]
    inner: list[Any]
    parts: list[Any]
    reduced: list[Any]
    groups: int
    is_packed: bool
    rows_outside: bool
    crosses: bool


class Nest(NamedTuple):
    """The loops of a task and of the results that are written at once, in their order.

    is_wide: whether these are of all panels, for which rows are widened.
    """

    task: Any
    results: Any
    is_wide: bool = False


def nested(
    state: State, view: BlockView, epilogue: BlockView, target: Target, tiles: Tiles
) -> Nest:
    """Order the loops of a reduction that was cut into tiles, and share them out as tasks."""
    if tiles.parts:
        return _by_parts(state, view, target, tiles)
    nest = _by_tiles(state, view, target, tiles)
    if _adds_a_tensor(view, epilogue):
        fetching_added(state.sch, nest.task)
    return nest


def _by_parts(state: State, view: BlockView, target: Target, tiles: Tiles) -> Nest:
    """A panel is a task, and all rows use a part of it before the next comes."""
    *rows, task = tiles.outer
    state.sch.reorder(task, *tiles.parts, *rows, *tiles.reduced, *tiles.inner)
    if tiles.is_packed:
        widen_once(state, view, [task, *tiles.parts], rows, target)
    state.sch.parallel(task)
    return Nest(task, task)


def _by_tiles(state: State, view: BlockView, target: Target, tiles: Tiles) -> Nest:
    """Tiles are summed up whole, in an order that is chosen, and tasks are of some."""
    sch, panels = state.sch, tiles.outer[-1]
    order = _ordered(state, tiles.outer, batch_axes(view), tiles.rows_outside)
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
    """Widen panels once for the rows that share them, and fetch them ahead."""
    panels, at = tiles.outer[-1], order.index(tiles.outer[-1]) + 1
    widen_once(state, view, order[:at], order[at:], target)
    _fetch_ahead(state, order, panels, panel_elements(view, tiles.sizes[-1]), target)
    _fetch_steps(state, view, [*order[: at - 1], *order[at:]], tiles.reduced, target)


def _ordered(state: State, outer: list[Any], own: list[int], rows_outside: bool) -> list[Any]:
    """The loops over tiles: a panel of columns over all rows, rows over all panels, or in blocks.

    With panels outermost, one packed panel is reused over all rows while it is in cache; in
    blocks, the rows of a block stay in cache as well. own: of the loops, which have panels of their
    own, and stand before all. rows_outside: what is tried first.
    """
    sch, panels = state.sch, outer[-1]
    batch = [outer[at] for at in own]
    rows = [loop for at, loop in enumerate(outer[:-1]) if at not in own]
    wide = next((loop for loop in rows if extent(sch, loop) > 1), None)
    if extent(sch, panels) == 1 and not batch:
        return outer
    if extent(sch, panels) == 1 or wide is None:
        return [*batch, panels, *rows]
    halves = [2] if extent(sch, wide) % 2 == 0 and extent(sch, wide) > 2 else []
    if is_marked(sch, wide):
        halves = []
    blocks = state.choose("order", [1, 0, *halves], guess=int(rows_outside))
    if blocks == 0:
        return [*batch, *rows, panels]
    if blocks == 1:
        return [*batch, panels, *rows]
    block, row = sch.split(wide, [blocks, None])
    return [*batch, block, panels, *[row if loop is wide else loop for loop in rows]]


def _fetch_ahead(state: State, order: list[Any], panels: Any, panel: int, target: Target) -> None:
    """Let the tiles of rows that share a panel fetch the next, which is a choice.

    panel: its elements.
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
    """Let steps fetch short weights of later ones, which is a choice, where one row uses them.

    Or one tile of rows, of those in words. rows: loops over tiles of rows.

    Of float32 a processor fetches enough by itself: as measured, fetches cost it 4%.
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
    """Let each tile of rows fetch those of the next, which is a choice, where no cache holds all.

    They lie one after the other, and each is done with before the next. size: rows of a tile.
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
    """Whether each tile of rows is widened by itself, for all panels, which is a choice.

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
