"""Micro-kernels: tiles of a reduction whose accumulators fill the vector registers.

    for h, w, c: for k: out[h, w, c] += a[h, w, k] * weight[k, c] ; epilogue
    -->
    parallel c / C, h, w / W:
        for W, C: acc[W, C] = 0
        for k: for W (unrolled), C (vectors): acc[W, C] += a[w, k] * packed[c / C, k, C]
        for W (unrolled), C (vectors): epilogue(acc[W, C])

The size of a tile comes from the target: W x C / lanes accumulators and the operands in flight
fill the registers, and of the tiles that do, those with the most multiply-adds a load come first
(Goto and van de Geijn, 2008).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .._tvm import structural_walk, tirx
from ..target import Target
from . import blocks as b
from . import loops as l
from .state import State, divisors

# Registers kept beside the accumulators and one step's vectors of the panel.
SPARE_REGISTERS = 2
# A vector of a panel comes from the second cache where an element of a row comes from the first.
PANEL_LOAD = 3.0
# Widest tile, in vectors: wider only costs loads of the panel.
MAX_VECTORS = 4
# Tiles offered to the search, the best first, and how much worse than the best the last may be.
OFFERED = 8
WORST = 0.7
# Innermost axes that a tile may span besides the contiguous one.
ROW_AXES = 3
# Groups of channels narrower than this are not worth a vector each.
NARROW_GROUP = 4

# Steps of a reduction that are written out as a whole: a depthwise kernel, a pooling window.
FEW_TAPS = 9
# Of the second cache, what panels may take: all rows pass by them, and want some as well.
PANEL_SHARE = 0.5
# Rows that use a panel: from here copying it may pay, and from here it does.
PACKING_PAYS = 64
PACKING_WINS = 128

Phases = Mapping[Any, int]


def tile_reduction(state: State, reduction: Any, target: Target, phases: Phases) -> None:
    """Tile a reduction, with its epilogue and producers.

    phases: the remainder by which each axis in it is told apart. A tile holds whole sets of
    remainders, and the reducing axis's are written out, so that conditions on them vanish.
    """
    sch = state.sch
    l.inline_producers(sch, reduction)
    node = sch.get(reduction)
    rank = len(b.spatial_vars(node))
    steps = [phases.get(axis.var, 1) for axis in node.iter_vars]
    offered = tiles(node, target, steps)
    if not offered:
        raise ValueError("no tile fits the registers")
    tile = state.choose("register", offered)
    if b.is_contraction(node):
        pack_operands(state, reduction, tile[-1], target)
    epilogue = l.epilogue(sch, reduction)
    loops = sch.get_loops(reduction)
    pairs = [sch.split(loop, [None, size]) for loop, size in zip(loops[:rank], tile, strict=True)]
    outer, inner = [o for o, _ in pairs], [i for _, i in pairs]
    parts, depth = _in_parts(state, outer, loops[rank:], _panel_bytes(node, tile[-1]), target)
    reduced = _unrolled_steps(state, depth, steps[rank:])
    task = _nested(state, outer, parts, [*reduced, *inner], _rows_outside(node, target))
    sch.reverse_compute_at(epilogue, task, preserve_unit_loops=True)
    _place_producers(state, reduction, None if parts else task, target)
    l.unroll_and_vectorize(sch, epilogue, 1 if parts else rank, target)
    # A block without its init is no reduction any more: annotate first, then decompose.
    l.unroll_and_vectorize(sch, reduction, rank, target)
    init = sch.decompose_reduction(reduction, (parts or reduced)[0])
    l.unroll_and_vectorize(sch, init, rank, target)
    state.done |= {sch.get(stage).name_hint for stage in (init, reduction, epilogue)}


def tiles(node: Any, target: Target, steps: list[int]) -> list[tuple[int, ...]]:
    """Tile sizes of the result's axes, the most multiply-adds a load first.

    steps: of all axes, the reducing ones last; what each size must be a multiple of.
    """
    rank = len(b.spatial_vars(node))
    extents = [int(axis.dom.extent) for axis in node.iter_vars][:rank]
    taps = math.prod(steps[rank:])
    lanes = l.lanes(target)
    # Taps written out want registers for the inputs that they share.
    few = _taps(node) <= FEW_TAPS
    registers = target.vector_registers // 2 + SPARE_REGISTERS if few else target.vector_registers
    operands = _indexing_axes(node)
    scored = []
    for columns in divisors(math.gcd(extents[-1], _group(node))):
        width = math.gcd(columns, lanes)
        vectors = columns // width
        if vectors > MAX_VECTORS:
            continue
        room = (registers - SPARE_REGISTERS - vectors) // vectors
        limit = max(math.prod(steps[: rank - 1]), room)
        for rows in _row_tiles(extents[:-1], steps[:rank], operands, limit):
            tile = (*rows, columns)
            read = _loads(tile, steps[:rank], operands, columns // width, taps)
            score = _score(math.prod(rows) * vectors, read) * width / lanes
            scored.append((score, tile))
    # Of equals the largest: it has the most accumulators to hide latencies behind.
    scored.sort(key=lambda pair: (-round(pair[0], 6), -math.prod(pair[1]), pair[1]))
    return [tile for score, tile in scored if score >= WORST * scored[0][0]][:OFFERED]


def _score(adds: float, loads: float) -> float:
    """Multiply-adds a load or multiply-add, of one step of the reduction."""
    return adds / (adds + loads)


def _loads(
    tile: tuple[int, ...], steps: list[int], operands: list[list[bool]], vectors: int, taps: int
) -> float:
    """Elements, or vectors of the contiguous axis, that a step reads.

    Positions `steps` apart share a tap, and there are `taps` of them; between them lies one input.
    """
    panel = PANEL_LOAD if not all(column for *_, column in operands) else 1.0
    loads = 0.0
    for *used, column in operands:
        sizes = [
            size // step + (step > 1)
            for size, step, uses in zip(tile, steps, used, strict=False)
            if uses
        ]
        loads += math.prod(sizes) * (panel * vectors * taps if column else 1)
    return loads


def _indexing_axes(node: Any) -> list[list[bool]]:
    """For each operand, which of the result's axes its indices mention, groups apart."""
    spatial = b.spatial_vars(node)
    found = []
    for _, indices in b.operands(node):
        used = [any(b.uses(index, var) for index in indices) for var in spatial]
        grouped = not any(_contiguous(index, spatial[-1]) for index in indices)
        found.append([*used[:-1], used[-1] and not grouped])
    return found


def _contiguous(index: Any, var: Any) -> bool:
    """Whether an index moves with every step of an axis, not once a group of them."""
    return b.uses(index, var) and not _divided(index, var)


def _divided(expr: Any, var: Any) -> list[int]:
    found: list[int] = []

    def visit(node: Any) -> None:
        if isinstance(node.b, tirx.IntImm) and b.uses(node.a, var):
            found.append(int(node.b.value))

    structural_walk(expr, (tirx.FloorDiv, visit))
    return found


def _group(node: Any) -> int:
    """Columns of one group of a grouped reduction: a vector across two would read apart; or 0."""
    column = b.spatial_vars(node)[-1]
    sizes = [s for _, indices in b.operands(node) for i in indices for s in _divided(i, column)]
    return math.gcd(*[size for size in sizes if size >= NARROW_GROUP]) if sizes else 0


def _row_tiles(
    extents: list[int], steps: list[int], operands: list[list[bool]], limit: int
) -> list[list[int]]:
    """Tiles of the innermost row axes along which some operand is reused."""
    reused = [any(not used[axis] for used in operands) for axis in range(len(extents))]
    axes = [axis for axis, ok in enumerate(reused) if ok and extents[axis] > 1][-ROW_AXES:]
    axes = sorted({*axes, *(axis for axis, step in enumerate(steps[:-1]) if step > 1)})
    found = [[1] * len(extents)]
    for axis in reversed(axes):
        found = [
            [*tile[:axis], size, *tile[axis + 1 :]]
            for tile in found
            for size in divisors(extents[axis])
            if math.prod(tile) * size <= limit and size % steps[axis] == 0
        ]
    return found


def pack_operands(state: State, reduction: Any, columns: int, target: Target) -> None:
    """Bring operands into panels: constants always, others where their columns lie apart."""
    sch = state.sch
    node = sch.get(reduction)
    column = b.spatial_vars(node)[-1]
    for position, region in enumerate(node.reads):
        indices = l.index_of(node, region.source)
        axes = [at for at, index in enumerate(indices or []) if index.same_as(column)]
        if indices is None or len(axes) != 1 or len(indices) < 2:
            continue
        free = l.is_layout_free(sch, region.source)
        apart = axes[0] != len(indices) - 1
        if free or apart or _worth_packing(state, node, indices, columns, target):
            copy = l.pack(sch, reduction, position, axes[0], columns)
            if apart and not free:
                # Its elements are gathered anyway: straight loops do that best.
                sch.parallel(sch.fuse(*sch.get_loops(copy)[:-1]))
            elif not free:
                l.parallel_map(sch, copy, target)
            state.done.add(sch.get(copy).name_hint)


def _worth_packing(
    state: State, node: Any, indices: list[Any], columns: int, target: Target
) -> bool:
    """Whether a panel is read by so many tiles that copying it pays; asks where that is open."""
    spatial = b.spatial_vars(node)
    extents = [int(axis.dom.extent) for axis in node.iter_vars][: len(spatial)]
    rows = math.prod(
        extent
        for var, extent in zip(spatial, extents, strict=True)
        if not any(b.uses(index, var) for index in indices)
    )
    if rows < PACKING_PAYS or columns == extents[-1]:
        return False
    if _panel_bytes(node, columns) > target.l1_bytes and rows >= PACKING_WINS:
        return True
    return state.choose("pack", [False, True])


def _ordered(state: State, outer: list[Any], rows_outside: bool) -> list[Any]:
    """The loops over tiles: a panel of columns over all rows, rows over all panels, or in blocks.

    With panels outermost, one packed panel is reused over all rows while it is in cache; in
    blocks, the rows of a block stay in cache as well. rows_outside: what is tried first.
    """
    sch = state.sch
    *rows, panels = outer
    if l.extent(sch, panels) == 1:
        return outer
    wide = next((loop for loop in rows if l.extent(sch, loop) > 1), None)
    if wide is None:
        return [panels, *rows]
    halves = [2] if l.extent(sch, wide) % 2 == 0 and l.extent(sch, wide) > 2 else []
    blocks = state.choose("order", [1, 0, *halves], guess=int(rows_outside))
    if blocks == 0:
        return outer
    if blocks == 1:
        return [panels, *rows]
    block, row = sch.split(wide, [blocks, None])
    return [block, panels, *[row if loop is wide else loop for loop in rows]]


def _in_parts(
    state: State, outer: list[Any], reduced: list[Any], panel_bytes: int, target: Target
) -> tuple[list[Any], list[Any]]:
    """The reducing loops as (over parts, in a part), where a panel is too large for its cache.

    All rows use a part of the panel before the next comes: what they sum up lies in memory in
    between. Each panel is a task of its own then.
    """
    sch = state.sch
    *rows, panels = (l.extent(sch, loop) for loop in outer)
    excess = panel_bytes / (PANEL_SHARE * target.l2_bytes)
    if excess <= 1 or math.prod(rows) == 1 or panels < 2 * target.cores:
        return [], reduced
    most = l.extent(sch, reduced[-1])
    count = next((d for d in divisors(most) if d >= 2 * excess), most)
    if count == 1 or state.choose("parts", [count, 1]) == 1:
        return [], reduced
    part, rest = sch.split(reduced[-1], [count, None])
    return [part], [*reduced[:-1], rest]


def _nested(
    state: State, outer: list[Any], parts: list[Any], inside: list[Any], rows_outside: bool
) -> Any:
    """Bring the loops in order; the parallel one, over tasks."""
    sch = state.sch
    if parts:
        *rows, task = outer
        sch.reorder(task, *parts, *rows, *inside)
    else:
        outer = _ordered(state, outer, rows_outside)
        sch.reorder(*outer, *inside)
        task = sch.fuse(*outer)
    sch.parallel(task)
    return task


def _rows_outside(node: Any, target: Target) -> bool:
    """Whether all panels stay in the second cache, beside the rows in hand, but all rows do not."""
    room = PANEL_SHARE * target.l2_bytes
    columns = int(node.iter_vars[len(b.spatial_vars(node)) - 1].dom.extent)
    regions = [*node.reads, *node.writes]
    rows = sum(math.prod(int(n) for n in region.source.shape) for region in regions)
    return _panel_bytes(node, columns) <= room < rows * 4


def _unrolled_steps(state: State, reduced: list[Any], steps: list[int]) -> list[Any]:
    """The reducing loops, their phases and some of the innermost loop's steps written out last."""
    sch = state.sch
    loops, written = [], []
    for loop, step in zip(reduced, steps, strict=True):
        if step == 1:
            loops.append(loop)
        elif l.extent(sch, loop) % step:
            written.append(loop)
        else:
            outer, inner = sch.split(loop, [None, step])
            loops.append(outer)
            written.append(inner)
    if not written:
        loops, written = _unrolled_innermost(state, loops)
    for loop in written:
        sch.unroll(loop)
    return [*loops, *written]


def _unrolled_innermost(state: State, loops: list[Any]) -> tuple[list[Any], list[Any]]:
    """A few taps are written out at once, of a long reduction some steps: (loops, written)."""
    sch = state.sch
    total = math.prod(l.extent(sch, loop) for loop in loops)
    few = total <= FEW_TAPS
    steps = [d for d in (1, 2) if l.extent(sch, loops[-1]) % d == 0 and d < total]
    step = state.choose("unroll", [total, *steps] if few else steps)
    if step == total:
        return [], loops
    if step == 1:
        return loops, []
    outer, inner = sch.split(loops[-1], [None, step])
    return [*loops[:-1], outer], [inner]


def _taps(node: Any) -> int:
    return math.prod(int(a.dom.extent) for a in node.iter_vars if a.iter_type == b.REDUCE)


def _panel_bytes(node: Any, columns: int) -> int:
    """What so many columns of a float32 operand take, packed."""
    return _taps(node) * columns * 4


def _place_producers(state: State, reduction: Any, task: Any | None, target: Target) -> None:
    """Padding and other producers: once for all, for each task what it reads, or at each read.

    task: None where each reads all rows.
    """
    sch = state.sch
    few = _taps(sch.get(reduction)) <= FEW_TAPS
    for producer in sch.get_producers(reduction):
        name = sch.get(producer).name_hint
        if name in state.done or b.is_reduction(sch.get(producer)):
            continue
        if sch.get_producers(producer) or len(sch.get_consumers(producer)) > 1:
            continue
        if few:
            sch.compute_inline(producer)
            continue
        if task is not None and state.choose("location", ["root", "task"]) == "task":
            sch.compute_at(producer, task, preserve_unit_loops=True)
            _, lane = l.split_lanes(sch, sch.get_loops(producer)[-1], target)
            if l.extent(sch, lane) > 1:
                sch.vectorize(lane)
        else:
            l.parallel_map(sch, producer, target)
        state.done.add(name)
