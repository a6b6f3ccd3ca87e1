"""Tile: a micro-kernel whose accumulators fill the vector registers, reductions outside it.

    for n, h, w, c: for k: out[n, h, w, c] += a[n, h, w, k] * weight[k, c] ; epilogue
    -->
    for c / C, n, h, w / W in parallel:
        acc[W, C] = 0
        for k: for W (unrolled): acc[W, :] += a[w, k] * packed[c / C, k, :]      (vectors)
        for W (unrolled): epilogue(acc[W, :])

Constant weights are packed [c / C, k, C] at build time. A convolution so tiled reaches the
machine's peak when W x C / lanes accumulators stay in registers (Goto and van de Geijn, 2008).
"""

from __future__ import annotations

import math
from typing import Any

from ..model import blocks as b
from ..target import Target

# Registers kept for the operands of the multiply-adds in flight.
OPERAND_REGISTERS = 4
# Widest vector loop, in registers: wider only costs code.
MAX_VECTORS = 4


def schedule_tile(sch: Any, block: Any, target: Target) -> set[str]:
    """Tile a reduction, its epilogue with it; returns the names of the blocks it dealt with."""
    node = sch.get(block)
    spatial = b.spatial_vars(node)
    extents = [int(axis.dom.extent) for axis in node.iter_vars][: len(spatial)]
    rows, columns = choose_tile(node, extents, target)
    if b.is_contraction(node):
        _pack_operands(sch, block, columns)
    epilogue = _epilogue(sch, block)
    loops = sch.get_loops(block)
    outer, inner = _split(sch, loops[: len(spatial)], rows, columns)
    reduce_loops = loops[len(spatial) :]
    # Channel tiles outermost: one packed weight panel is reused over all rows while in cache.
    sch.reorder(outer[-1], *outer[:-1], *reduce_loops, *inner)
    task = sch.fuse(outer[-1], *outer[:-1])
    sch.parallel(task)
    sch.reverse_compute_at(epilogue, task, preserve_unit_loops=True)
    _unroll_and_vectorize(sch, epilogue, rows, target)
    # A block without its init is no reduction any more: annotate first, then decompose.
    _unroll_and_vectorize(sch, block, rows, target)
    init = sch.decompose_reduction(block, reduce_loops[0])
    _unroll_and_vectorize(sch, init, rows, target)
    return {node.name_hint, sch.get(epilogue).name_hint}


def choose_tile(block: Any, extents: list[int], target: Target) -> tuple[list[int], int]:
    """Tile sizes of the row axes and of the contiguous axis.

    Among the divisors, the pair with the most multiply-adds a load, its accumulators within
    the registers. Only axes that an operand lacks are worth a row tile: there its loads are
    reused.
    """
    lanes = max(1, target.vector_bytes // 4)
    limit = max(1, target.vector_registers - OPERAND_REGISTERS)
    reusable = _reusable_axes(block)
    best, best_score = ([1] * (len(extents) - 1), 1), -1.0
    for columns in b.divisors(extents[-1]):
        width = math.gcd(columns, lanes)
        vectors = columns // width
        if vectors > MAX_VECTORS:
            continue
        for rows in _row_tiles(extents[:-1], reusable, limit // vectors):
            count = math.prod(rows)
            score = count * vectors / (count + vectors) * width / lanes
            if score > best_score:
                best, best_score = (rows, columns), score
    return best


def _row_tiles(extents: list[int], reusable: list[bool], limit: int) -> list[list[int]]:
    """Tiles of the last reusable row axis, and of the one before it once that is whole."""
    axes = [axis for axis, ok in enumerate(reusable) if ok and extents[axis] > 1][-2:]
    tiles = [[1] * len(extents)]
    for axis in reversed(axes):
        tiles = [
            [*tile[:axis], size, *tile[axis + 1 :]]
            for tile in tiles
            for size in b.divisors(extents[axis])
            if math.prod(tile) * size <= limit
        ]
    return tiles


def _reusable_axes(block: Any) -> list[bool]:
    loads = b.operands(block)
    return [
        any(not any(b.uses(index, var) for index in indices) for _, indices in loads)
        for var in b.spatial_vars(block)[:-1]
    ]


def _epilogue(sch: Any, block: Any) -> Any:
    """The one elementwise consumer, or a copy-out made for a block that has none."""
    consumers = sch.get_consumers(block)
    if len(consumers) == 1 and not b.is_reduction(sch.get(consumers[0])):
        return consumers[0]
    return sch.cache_write(block, 0, "global")


def _split(
    sch: Any, loops: list[Any], rows: list[int], columns: int
) -> tuple[list[Any], list[Any]]:
    pairs = [
        sch.split(loop, [None, tile]) for loop, tile in zip(loops, [*rows, columns], strict=True)
    ]
    return [outer for outer, _ in pairs], [inner for _, inner in pairs]


def _unroll_and_vectorize(sch: Any, stage: Any, rows: list[int], target: Target) -> None:
    """One vector register a vectorised loop: LLVM handles odd widths badly, unrolling well."""
    *loops, last = sch.get_loops(stage)[-1 - len(rows) :]
    vectors, lanes = split_lanes(sch, last, target)
    for loop in [*loops, vectors]:
        if int(sch.get(loop).extent) > 1:
            sch.unroll(loop)
    if int(sch.get(lanes).extent) > 1:
        sch.vectorize(lanes)


def split_lanes(sch: Any, loop: Any, target: Target) -> tuple[Any, Any]:
    """The loop as (vectors, lanes), lanes the widest power of two that divides it."""
    width = math.gcd(int(sch.get(loop).extent), max(1, target.vector_bytes // 4))
    vectors, lanes = sch.split(loop, [None, width])
    return vectors, lanes


def _pack_operands(sch: Any, block: Any, columns: int) -> None:
    """Bring operands whose elements along the vector are apart, or free, into panel order."""
    node = sch.get(block)
    column = b.spatial_vars(node)[-1]
    for position, region in enumerate(node.reads):
        indices = next(
            (found for buffer, found in b.operands(node) if buffer.same_as(region.source)), None
        )
        if indices is None:
            continue
        axes = [axis for axis, index in enumerate(indices) if index.same_as(column)]
        if len(axes) != 1 or len(indices) < 2:
            continue
        free = _is_layout_free(sch, region.source)
        if free or axes[0] != len(indices) - 1:
            _pack(sch, block, position, axes[0], columns, free)


def _is_layout_free(sch: Any, buffer: Any) -> bool:
    func = sch.mod["main"]
    free = [int(index) for index in (func.attrs or {}).get("layout_free_buffers", [])]
    return any(func.params[index].same_as(buffer) for index in free)


def _pack(sch: Any, block: Any, position: int, axis: int, columns: int, free: bool) -> None:
    def panels(*indices: Any) -> list[Any]:
        rest = [index for at, index in enumerate(indices) if at != axis]
        return [indices[axis] // columns, *rest, indices[axis] % columns]

    copy = sch.cache_read(block, position, "global")
    sch.transform_layout(block, ("read", position), panels, pad_value=None)
    if free:
        # The builder lifts a block so marked out of the program and into the constants.
        sch.annotate(copy, "meta_schedule.layout_rewrite_preproc", True)
        return
    outer = sch.get_loops(copy)
    sch.parallel(sch.fuse(*outer[:-1]))


def vectorize_map(sch: Any, block: Any, target: Target) -> None:
    """One pass: outer loops fused and parallel, the contiguous axis in vectors."""
    loops = sch.get_loops(block)
    if not loops:
        return
    if len(loops) > 1:
        outer, inner = sch.fuse(*loops[:-1]), loops[-1]
    else:
        outer, inner = None, loops[-1]
    steps, lanes = split_lanes(sch, inner, target)
    if int(sch.get(lanes).extent) > 1:
        sch.vectorize(lanes)
    sch.parallel(sch.fuse(outer, steps) if outer is not None else steps)
