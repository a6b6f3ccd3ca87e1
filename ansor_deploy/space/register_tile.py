"""The micro-kernel: a tile of a reduction that fills the vector registers with accumulators.

    for h, w, c: for k: out[h, w, c] += a[h, w, k] * weight[k, c] ; epilogue
    -->
    parallel c / C, h, w / W:
        for W, C: acc[W, C] = 0
        for k: for W (unrolled), C (vectors): acc[W, C] += a[w, k] * packed[c / C, k, C]
        for W (unrolled), C (vectors): epilogue(acc[W, C])

`tile_sizes.py` has the sizes. Where one does not divide its extent, the loop over tiles is marked,
so that lowering cuts the rest off, and joined with others there, if the cores need its tasks.
"""

import math
from collections.abc import Mapping
from typing import Any

from .._tvm import tirx
from ..marks.added_prefetch import fetching_added
from ..marks.dot import STEPS
from ..marks.prefetch import prefetching, prefetching_rows
from ..marks.row_vectors import ROW_LANES, reading_vectors
from ..marks.streamed import streaming
from ..target import Target
from .block_view import BlockView
from .cores import keeps_busy, shared
from .fitting import first_that_fits
from .loops import extent, inline_producers, is_marked, parallel_map, vectorized, written_out
from .matrix_sizes import groups_of_steps, matrix_sizes, sums_matrices
from .micro_kernel import cut_columns, split_tiles, write_out_tile
from .packing import (
    in_words,
    made_float32,
    pack_operands,
    packed_steps,
    panel_bytes,
    panel_elements,
    panel_room,
    rows_of,
)
from .rows import fuse_rows
from .state import State
from .tile_sizes import FEW_TAPS, batch_axes, register_tiles, takes_lanes
from .tiles import divisors
from .widening import widen_once

# Of the second cache, what panels may take: all rows pass by them, and want some as well.
PANEL_SHARE = 0.5
# Bytes of rows for each of the panels from which rows are read once, and panels again and again.
ROWS_WORTH = 3

# Steps of a long reduction that are written out at once, and how many are the guess.
WRITTEN = (1, 2, 4, 8)
WRITTEN_GUESS = 4
# Axes of what has been widened as one row after the other, wherever a row of an image ends.
ROW = 2
# Weights of four bits that share a word.
IN_WORD = 8


def tile_reduction(
    state: State, view: BlockView, target: Target, phases: Mapping[Any, int] | None = None
) -> None:
    """Tile a reduction, with its epilogue and producers. ValueError where no tile fits.

    phases: for axes (their variables) how many remainders of each differ. A tile holds whole sets
    of remainders, and the reducing axis's are written out, so that conditions on them vanish.
    """
    sch, reduction = state.sch, view.rv
    (epilogue,) = view.consumers
    # The reduction's, and the epilogue's others: none may stand outside of the loops it moves to.
    inline_producers(sch, epilogue.rv)
    width = fuse_rows(sch, view) if phases is None else 0
    rank, columns = len(view.spatial), view.spatial[-1]
    steps = [(phases or {}).get(axis.var, 1) for axis in view.node.iter_vars]
    groups = groups_of_steps(view) if phases is None and sums_matrices(view, target) else 0
    offered = _matrices(view, target, width) if groups else register_tiles(view, target, steps)
    if not offered:
        raise ValueError("no tile fits the registers")
    guess = 0 if groups else first_that_fits(view, epilogue, offered, target)
    tile = state.choose("register", offered, guess, ordered=True)
    rows_outside, by_lane = _rows_outside(view, target), takes_lanes(view, tile, target)
    constant = view.is_contraction and pack_operands(state, view, tile[-1], target)
    outer, inner, reducing = split_tiles(sch, view, tile, groups)
    room = panel_room(BlockView(sch, reduction), tile[-1], target)
    parts, depth = _in_parts(state, outer, reducing, room, target)
    written, most = _whole_words(view, steps[rank:]), _written(state, reduction, target)
    reduced = depth if groups else _unrolled_steps(state, depth, written, most, by_lane=by_lane)
    # A tile that begins in one row of an image and ends in the next reads now more, now less of it.
    crosses, wide = bool(width and width % tile[-2]), False
    if parts:
        *rows, task = outer
        sch.reorder(task, *parts, *rows, *reduced, *inner)
        if constant:
            widen_once(state, view, [task, *parts], rows, target)
        sch.parallel(task)
    else:
        order = _ordered(state, outer, batch_axes(view), rows_outside)
        sch.reorder(*order, *reduced, *inner)
        if constant:
            at = order.index(outer[-1]) + 1
            widen_once(state, view, order[:at], order[at:], target)
            _fetch_ahead(state, order, outer[-1], panel_elements(view, tile[-1]), target)
            _fetch_steps(state, view, [*order[: at - 1], *order[at:]], reduced, target)
        wide = order[-1] is outer[-1] and _widens_rows(
            state, view, order[:-1], target, crosses=crosses
        )
        if not wide and rank > 1:
            _fetch_rows(state, view, order, tile[-2], target)
        task = shared(sch, order[:-1] if wide else order, target.cores)
        if _adds_a_tensor(view, epilogue):
            fetching_added(sch, task)
    sch.reverse_compute_at(epilogue.rv, order[-1] if wide else task, preserve_unit_loops=True)
    if wide:
        _place_rows(state, view, task, target)
    _place_producers(state, view, None if parts or crosses else task, target)
    written_out(sch, epilogue.rv, 1 if parts or groups else rank, target, columns=tile[-1])
    init = write_out_tile(sch, view, tile, (parts or reduced)[0], target)
    cut_columns(sch, [init, reduction, epilogue.rv], columns, tile[-1])
    state.finish(init, reduction, epilogue.rv)


def _matrices(view: BlockView, target: Target, width: int) -> list[tuple[int, ...]]:
    """Tile sizes of matrices. width: of a row of an image, if rows of several are one axis."""
    apart = len(view.spatial) > 1 and any(steps[-2] is None for steps in view.steps)
    return matrix_sizes(view, target, width if apart else 0)


def _adds_a_tensor(view: BlockView, epilogue: BlockView) -> bool:
    """Whether the epilogue reads another tensor as large as its result, such as a residual."""
    (made,) = [region.source for region in view.node.writes]
    others = [buffer for buffer, _ in epilogue.operands if not buffer.same_as(made)]
    return any(math.prod(map(int, one.shape)) >= math.prod(view.spatial) for one in others)


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


def _in_parts(
    state: State, outer: list[Any], reduced: list[Any], panel: int, target: Target
) -> tuple[list[Any], list[Any]]:
    """The reducing loops as (over parts, in a part), where a panel is too large for its cache.

    All rows use a part of the panel before the next comes: what they sum up lies in memory in
    between. Each panel is a task of its own then. panel: bytes of the cache that it takes.
    """
    sch = state.sch
    *rows, panels = (extent(sch, loop) for loop in outer)
    excess = panel / (PANEL_SHARE * target.l2_bytes)
    if excess <= 1 or math.prod(rows) == 1 or panels < 2 * target.cores:
        return [], reduced
    most = extent(sch, reduced[-1])
    count = next((d for d in divisors(most) if d >= 2 * excess), most)
    if count == 1 or state.choose("parts", [count, 1]) == 1:
        return [], reduced
    part, rest = sch.split(reduced[-1], [count, None])
    return [part], [*reduced[:-1], rest]


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


def _rows_outside(view: BlockView, target: Target) -> bool:
    """Whether all panels stay in the second cache, beside the rows in hand, but all rows do not.

    Of few rows, to read the panels takes longer: they come one after the other, each fetched ahead.
    """
    room, node = PANEL_SHARE * target.l2_bytes, view.node
    panels = panel_bytes(view, view.spatial[-1])
    batch = math.prod(view.spatial[at] for at in batch_axes(view))
    buffers = [region.source for region in [*node.reads, *node.writes]]
    whole = sum(math.prod(map(int, one.shape)) * one.dtype.itemsize for one in buffers)
    used = whole // batch
    return panels <= room and used - panels > max(room, ROWS_WORTH * panels)


def _whole_words(view: BlockView, steps: list[int]) -> list[int]:
    """Steps to be written out: of weights that share a word all, so that their places are known."""
    shared = in_words(view) and view.reduced[-1] % IN_WORD == 0
    return [*steps[:-1], IN_WORD] if shared else steps


def _written(state: State, reduction: Any, target: Target) -> int:
    """How many steps are written out by guess: LLVM would have products of all in registers."""
    view = BlockView(state.sch, reduction)
    apart = 0 < packed_steps(view) <= STEPS and rows_of(view, target) != "uint8"
    return 1 if apart else WRITTEN_GUESS


def _unrolled_steps(
    state: State, reduced: list[Any], steps: list[int], most: int, *, by_lane: bool
) -> list[Any]:
    """The reducing loops, their phases and some of the innermost loop's steps written out last."""
    sch = state.sch
    loops, written = [], []
    for loop, step in zip(reduced, steps, strict=True):
        if step == 1:
            loops.append(loop)
        elif extent(sch, loop) % step:
            written.append(loop)
        else:
            outer, inner = sch.split(loop, [None, step])
            loops.append(outer)
            written.append(inner)
    if not written:
        loops, written = unrolled_innermost(state, loops, most, by_lane=by_lane)
    for loop in written:
        sch.unroll(loop)
    return [*loops, *written]


def unrolled_innermost(
    state: State, loops: list[Any], most: int = WRITTEN_GUESS, *, by_lane: bool
) -> tuple[list[Any], list[Any]]:
    """A few taps are written out at once, of a long reduction some steps: (loops, written).

    most: steps by guess. by_lane: whether multiply-adds take lanes of vectors along rows, where
    enough steps are.
    """
    sch = state.sch
    total = math.prod(extent(sch, loop) for loop in loops)
    few = total <= FEW_TAPS
    steps = [d for d in WRITTEN if extent(sch, loops[-1]) % d == 0 and d < total]
    options = [total, *steps] if few else steps
    guess = 0 if few else sum(step <= most for step in steps[1:])
    step = state.choose("unroll", options, guess, ordered=not few)
    if step == total:
        return [], loops
    if step == 1:
        return loops, []
    outer, inner = sch.split(loops[-1], [None, step])
    if by_lane and step % ROW_LANES == 0:
        reading_vectors(sch, inner)
    return [*loops[:-1], outer], [inner]


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


def _place_rows(state: State, view: BlockView, rows: Any, target: Target) -> None:
    """What a tile of rows reads, widened before all panels multiply by it."""
    for producer in view.producers:
        if producer.widens_bytes:
            state.sch.compute_at(producer.rv, rows, preserve_unit_loops=True)
            vectorized(state.sch, state.sch.get_loops(producer.rv)[-1], target, producer.bits)
            state.finish(producer.rv)


def _place_producers(state: State, view: BlockView, task: Any | None, target: Target) -> None:
    """Padding and other producers: once for all, for each task what it reads, or at each read.

    task: None where each reads all rows.
    """
    sch = state.sch
    for producer in view.producers:
        if not _is_padding(state, producer):
            continue
        if math.prod(view.reduced) <= FEW_TAPS:
            sch.compute_inline(producer.rv)
            continue
        if task is not None and state.choose("location", ["root", "task"]) == "task":
            sch.compute_at(producer.rv, task, preserve_unit_loops=True)
            vectorized(sch, sch.get_loops(producer.rv)[-1], target)
        else:
            parallel_map(sch, producer.rv, target)
        state.finish(producer.rv)


def _is_padding(state: State, producer: BlockView) -> bool:
    """Whether nothing else needs a producer, and it needs no other stage."""
    if producer.name in state.done or producer.is_reduction:
        return False
    return not producer.producers and len(producer.consumers) <= 1
