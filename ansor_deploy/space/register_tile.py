"""The micro-kernel: a tile of a reduction that fills the vector registers with accumulators.

    for h, w, c: for k: out[h, w, c] += a[h, w, k] * weight[k, c] ; epilogue
    -->
    parallel c / C, h, w / W:
        for W, C: acc[W, C] = 0
        for k: for W (unrolled), C (vectors): acc[W, C] += a[w, k] * packed[c / C, k, C]
        for W (unrolled), C (vectors): epilogue(acc[W, C])

`tile_sizes.py` has the sizes. Where a size does not divide its extent, the loop over tiles is
partitioned: lowering makes separate code for the rest, and joins this loop with other parallel ones
if the cores need its tasks.
"""

import math
from collections.abc import Mapping
from typing import Any

from ..marks.dot import PAIR, STEPS
from ..marks.row_vectors import ROW_LANES, reading_vectors
from ..target import Target
from .block_view import BlockView
from .fitting import first_that_fits
from .groups import split_groups
from .loops import extent, inline_producers, parallel_map, vectorized, written_out
from .matrices import groups_of_steps, matrix_sizes, sums_matrices
from .micro_kernel import cut_columns, is_mostly_padding, split_tiles, write_out_tile
from .packing import (
    in_words,
    made_float32,
    made_words,
    pack_operands,
    packed_steps,
    panel_bytes,
    panel_room,
    rows_of,
)
from .rows import fuse_rows
from .state import State
from .tile_nest import PANEL_SHARE, Tiles, nested
from .tile_sizes import FEW_TAPS, batch_axes, register_tiles, takes_lanes
from .tiles import divisors

# Rows are read once, and panels for each tile of rows, where rows have this many times the bytes.
ROWS_WORTH = 3

# How many steps of a long reduction may be unrolled.
WRITTEN = (1, 2, 4, 8)
# How many of them the guess unrolls.
WRITTEN_GUESS = 4
# How many 4-bit weights share a word.
IN_WORD = 8


def tile_reduction(
    state: State, view: BlockView, target: Target, phases: Mapping[Any, int] | None = None
) -> None:
    """Tile a reduction, with its epilogue and producers. ValueError where no tile fits.

    phases: for variables of axes, the number of remainders that the axis must be split by. A tile
    holds whole sets of remainders, and those of reducing axes are unrolled, so that conditions on
    them become constants.
    """
    sch, (epilogue,) = state.sch, view.consumers
    # Producers of the reduction and of the epilogue: none may stay outside the loops they move to.
    inline_producers(sch, epilogue.rv)
    is_split = split_groups(state, view, target)
    width = 0 if phases is not None or is_mostly_padding(view) else fuse_rows(sch, view)
    rank, columns = len(view.spatial), view.spatial[-1]
    tiles = _cut(state, view, target, phases, width)
    parts, tile_columns = tiles.parts, tiles.sizes[-1]
    nest = nested(state, view, epilogue, target, tiles)
    sch.reverse_compute_at(epilogue.rv, nest.results, preserve_unit_loops=True)
    if nest.is_wide:
        _place_rows(state, view, nest.task, target)
    anywhere = not (parts or tiles.crosses or is_split)
    _place_producers(state, view, nest.task if anywhere else None, target)
    axes = 1 if parts or tiles.groups else rank
    written_out(sch, epilogue.rv, axes, target, columns=tile_columns)
    init = write_out_tile(sch, view, tiles.sizes, (parts or tiles.reduced)[0], target)
    cut_columns(sch, [init, view.rv, epilogue.rv], columns, tile_columns)
    state.finish(init, view.rv, epilogue.rv)


def _cut(
    state: State, view: BlockView, target: Target, phases: Mapping[Any, int] | None, width: int
) -> Tiles:
    """Choose a tile size, pack the operands for it and split the reduction's loops.

    width: results of an image's row, where the rows are fused into one axis; else 0.
    """
    steps = [(phases or {}).get(axis.var, 1) for axis in view.node.iter_vars]
    of_sums = steps[len(view.spatial) :]
    groups = groups_of_steps(view) if phases is None and sums_matrices(view, target) else 0
    offered = _matrices(view, target, width) if groups else register_tiles(view, target, steps)
    sizes = _chosen(state, view, offered, target, is_model=not groups)
    blocks, by_lane = _blocks(view, target), takes_lanes(view, sizes, target)
    is_packed = view.is_contraction and pack_operands(state, view, sizes[-1], target)
    outer, inner, reducing = split_tiles(state.sch, view, sizes, groups)
    room = panel_room(BlockView(state.sch, view.rv), sizes[-1], target)
    parts, reduced = _in_parts(state, outer, reducing, room, target)
    written, most = _whole_words(view, of_sums), _written(state, view.rv, target)
    if not groups:
        reduced = _unrolled_steps(state, reduced, written, most, by_lane=by_lane)
    crosses = bool(width and width % sizes[-2])
    return Tiles(sizes, outer, inner, parts, reduced, groups, is_packed, blocks, crosses)


def _chosen(
    state: State,
    view: BlockView,
    offered: list[tuple[int, ...]],
    target: Target,
    *,
    is_model: bool,
) -> tuple[int, ...]:
    """Choose a tile's sizes. is_model: whether they are of vectors, whose code may be too large."""
    if not offered:
        raise ValueError("no tile fits the registers")
    (epilogue,) = view.consumers
    guess = first_that_fits(view, epilogue, offered, target) if is_model else 0
    return state.choose("register", offered, guess, ordered=True)


def _matrices(view: BlockView, target: Target, width: int) -> list[tuple[int, ...]]:
    """Tile sizes for matrices. width: results of an image's row, where rows are fused; else 0."""
    apart = len(view.spatial) > 1 and any(steps[-2] is None for steps in view.steps)
    return matrix_sizes(view, target, width if apart else 0)


def _in_parts(
    state: State, outer: list[Any], reduced: list[Any], panel: int, target: Target
) -> tuple[list[Any], list[Any]]:
    """Split the reducing loops into (over parts, in a part), where a panel exceeds its cache.

    All rows use one part of the panel before the next part, with their sums in memory in between.
    Each panel is then a task. panel: bytes of the cache that a panel takes.
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


def _blocks(view: BlockView, target: Target) -> tuple[int, ...]:
    """The blocks of rows that loops over panels should be within; 0 where rows should be outside.

    Rows are outside where all panels fit the second cache, and rows do not. With few rows, reading
    panels takes longer than reading rows: then panels are outside, each fetched ahead. Otherwise
    each core has a block, since rows that another core has made come slowly, but not where each
    would widen all weights. Where tiles cannot be divided among the cores, the second number holds:
    large panels, which each tile would read from beyond the cache, are outside.
    """
    room, node = PANEL_SHARE * target.l2_bytes, view.node
    panels = panel_bytes(view, view.spatial[-1])
    batch = math.prod(view.spatial[at] for at in batch_axes(view))
    buffers = [region.source for region in [*node.reads, *node.writes]]
    whole = sum(math.prod(map(int, one.shape)) * one.dtype.itemsize for one in buffers)
    used = whole // batch
    rows = used - panels
    if panels <= room and rows > max(room, ROWS_WORTH * panels):
        return (0,)
    if panels >= rows or made_float32(view) or made_words(view, target):
        return (1,)
    return (target.cores, 0 if panels <= room / 2 else 1)


def _whole_words(view: BlockView, steps: list[int]) -> list[int]:
    """Steps to unroll: all weights of a word where they share one, so that shifts are constant."""
    shared = in_words(view) and view.reduced[-1] % IN_WORD == 0
    return [*steps[:-1], IN_WORD] if shared else steps


def _written(state: State, reduction: Any, target: Target) -> int:
    """How many steps the guess unrolls; 0 for none, however few there are.

    One where pairs of integers are multiplied: of several steps, LLVM would keep all products in
    registers. Pairs of 16 bits leave none free, so that it spills sums even of few steps.
    """
    view = BlockView(state.sch, reduction)
    if packed_steps(view) == PAIR:
        return 0
    apart = 0 < packed_steps(view) <= STEPS and rows_of(view, target) != "uint8"
    return 1 if apart else WRITTEN_GUESS


def _unrolled_steps(
    state: State, reduced: list[Any], steps: list[int], most: int, *, by_lane: bool
) -> list[Any]:
    """The reducing loops; their phases, or steps of the innermost loop, are unrolled and last."""
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
    """Choose which reducing loops to unroll: all of a few taps, or some steps of a long reduction.

    Returns (loops, those to unroll). most: how many steps the guess unrolls, and all of a few taps
    if it is not 0. by_lane: whether multiply-adds may take lanes of vectors along rows, which needs
    enough unrolled steps.
    """
    sch = state.sch
    total = math.prod(extent(sch, loop) for loop in loops)
    few = total <= FEW_TAPS
    steps = [d for d in WRITTEN if extent(sch, loops[-1]) % d == 0 and d < total]
    options = [total, *steps] if few else steps
    whole = few and most > 0
    guess = 0 if whole else sum(step <= max(1, most) for step in options[1:])
    step = state.choose("unroll", options, guess, ordered=not few)
    if step == total:
        return [], loops
    if step == 1:
        return loops, []
    outer, inner = sch.split(loops[-1], [None, step])
    if by_lane and step % ROW_LANES == 0:
        reading_vectors(sch, inner)
    return [*loops[:-1], outer], [inner]


def _place_rows(state: State, view: BlockView, rows: Any, target: Target) -> None:
    """Widen the bytes of a tile of rows once, before all panels are multiplied by them."""
    for producer in view.producers:
        if producer.widens_bytes:
            state.sch.compute_at(producer.rv, rows, preserve_unit_loops=True)
            vectorized(state.sch, state.sch.get_loops(producer.rv)[-1], target, producer.bits)
            state.finish(producer.rv)


def _place_producers(state: State, view: BlockView, task: Any | None, target: Target) -> None:
    """Place padding and other producers: at the root, in each task, or inlined into each read.

    task: None where each task reads all rows, or no constant number of inputs.
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
    """Whether a producer has no other consumer and reads no other stage."""
    if producer.name in state.done or producer.is_reduction:
        return False
    return not producer.producers and len(producer.consumers) <= 1
