"""Attention by blocks of query rows: their scores stay in a core's cache between two products.

    for q, k: for d: s[q, k] += query[q, d] * key[d, k]
    for q, k: p[q, k] = softmax(mask(s[q, k]))
    for q, d: for k: y[q, d] += p[q, k] * value[k, d]
    -->
    parallel batch, q / Q:
        for k / K, Q / R: s[R, K] = mask(query[R, :] * key[:, K])      a register tile
        for Q: p[k] = softmax(s[k])
        for d / D, Q / R: y[R, D] = p[R, :] * value[:, D]              a register tile

Q divides the rows, so that all blocks are alike, and tiles divide Q unless that is all rows. The
more rows a block has, the less often keys and values are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..target import Target
from .block_view import BlockView, blocks
from .cores import keeps_busy
from .loops import (
    extent,
    parallel,
    partitioned,
    reduced_in_lanes,
    vectorized,
    written_out,
)
from .micro_kernel import cut_columns, write_out_tile
from .packing import pack_operands
from .register_tile import unrolled_innermost
from .state import State
from .tile_sizes import takes_lanes, tiles_within
from .tiles import divisors

# Of the second cache, what the scores of a block may take: once as they are, once as weights.
SHARE = 0.4
# Rows of a block from which its scores are more to read than keys and values, of some 64 elements
# a row; and the most rows.
ENOUGH, MOST_ROWS = 32, 640
# Registers of partial sums and maxima of a row, the guess first.
ACCUMULATORS = (4, 2, 8)


def attention_pays(scores: Sequence[int], target: Target) -> bool:
    """Whether to compute an attention by blocks of rows, of scores (.., queries, keys) of float32.

    Where those of a head fit the first cache, kernels for all heads, one after the other, are as
    fast. Where blocks leave cores idle, such as rows that nothing divides, they are faster.
    """
    *batch, rows, keys = scores
    best = _best_rows(math.prod(batch), rows, keys, target)
    tasks = math.prod(batch) * rows // best
    large = 4 * rows * keys > target.l1_bytes
    return large and best >= min(ENOUGH, rows) and keeps_busy(tasks, target.cores)


def _best_rows(batch: int, rows: int, keys: int, target: Target) -> int:
    """Rows of a block that fit the cache, but enough, and so that all cores are busy."""
    options = _row_options(rows)
    enough = [size for size in options if size >= min(ENOUGH, rows)] or options[-1:]
    room = SHARE * target.l2_bytes / (2 * 4 * keys)
    fit = [size for size in enough if size <= room] or enough[:1]
    fair = [size for size in fit if keeps_busy(batch * rows // size, target.cores)]
    return max(fair or fit[:1])


def _row_options(rows: int) -> list[int]:
    return [size for size in divisors(rows) if size <= MOST_ROWS]


@dataclass(frozen=True)
class Attention:
    """A product of queries and keys, a softmax of it, and the product of that and of values.

    weighted: the last product. scores: the first. stages: those between them, in order.
    """

    weighted: BlockView
    scores: BlockView
    stages: tuple[BlockView, ...]

    @classmethod
    def of(cls, view: BlockView) -> Attention | None:
        """The attention that ends with a product; None where it ends none."""
        names: set[str] = set()
        products: dict[str, BlockView] = {}
        pending = view.producers
        while pending:
            one = pending.pop()
            if one.is_contraction:
                products[one.name] = one
            elif one.name not in names:
                names.add(one.name)
                pending += one.producers
        if len(products) != 1 or len(view.reduced) != 1:
            return None
        (scores,) = products.values()
        all_stages = [BlockView(view.sch, rv) for rv in blocks(view.sch)]
        stages = tuple(one for one in all_stages if one.name in names)
        found = cls(view, scores, stages)
        return found if found._is_by_rows() else None

    def _is_by_rows(self) -> bool:
        """Whether rows of all stages are rows of both products, and nothing else reads them."""
        stages = [self.scores, *self.stages]
        own = {one.name for one in [*self.stages, self.weighted]}
        shape = [*self.weighted.spatial[:-1], *self.weighted.reduced]
        reductions = [one for one in self.stages if one.is_reduction]
        return (
            bool(reductions)
            and self.scores.spatial == shape
            and len(self.scores.reduced) == 1
            and all(one.is_along_rows for one in reductions)
            and all([*one.spatial, *one.reduced] == shape for one in self.stages)
            and all(user.name in own for one in stages for user in one.consumers)
        )

    def choose_rows(self, state: State, target: Target) -> int:
        """How many rows make a block."""
        *batch, rows, _ = self.weighted.spatial
        (keys,), options = self.weighted.reduced, _row_options(rows)
        guess = options.index(_best_rows(math.prod(batch), rows, keys, target))
        return state.choose("rows", options, guess, ordered=True)


def tile_attention(state: State, attention: Attention, target: Target) -> None:
    """Schedule an attention by blocks of rows. ValueError where no tile fits."""
    sch, weighted, scores = state.sch, attention.weighted, attention.scores
    if weighted.epilogue is None:
        sch.cache_write(weighted.rv, 0, "global")
    (epilogue,) = weighted.consumers
    masked, *softmax = _stages(sch, attention)
    rows = attention.choose_rows(state, target)
    tiles = [_tile(state, "scores", scores, rows, target)]
    tiles.append(_tile(state, "register", weighted, rows, target))
    for product, tile in zip([scores, weighted], tiles, strict=True):
        pack_operands(state, product, tile[-1], target)
    task = _blocks_of_rows(sch, weighted, rows)
    _by_rows(sch, softmax, task, target)
    for one in (masked, scores):
        sch.compute_at(one.rv, task, preserve_unit_loops=True)
    inits = [
        _write_out(state, scores, masked, tiles[0], target),
        _write_out(state, weighted, epilogue, tiles[1], target),
        *_in_lanes(state, softmax, target),
    ]
    state.finish(*(one.rv for one in [scores, masked, *softmax, weighted, epilogue]), *inits)


def _stages(sch: Any, attention: Attention) -> list[BlockView]:
    """What becomes of scores before their softmax as one stage, a copy at least; then the rest.

    Each stage that a reduction reads is computed once.
    """
    for one in attention.stages[:-1]:
        if not one.is_reduction and not _is_reduced(one):
            sch.compute_inline(one.rv)
    if _is_reduced(attention.scores):
        sch.cache_write(attention.scores.rv, 0, "global")
    found = Attention.of(attention.weighted)
    if found is None or found.stages[0].is_reduction:
        raise ValueError("its rows are no rows of both products")
    return list(found.stages)


def _is_reduced(view: BlockView) -> bool:
    return any(user.is_reduction for user in view.consumers)


def _tile(state: State, about: str, view: BlockView, rows: int, target: Target) -> tuple[int, int]:
    """The size of a product's tiles in a block of rows: (rows, columns)."""
    offered = tiles_within(view, target, rows)
    if not offered:
        raise ValueError("no tile fits the registers")
    *_, height, width = state.choose(about, offered, ordered=True)
    return height, width


def _blocks_of_rows(sch: Any, view: BlockView, rows: int) -> Any:
    """The loop over blocks of a product's rows."""
    *batch, row, column, depth = sch.get_loops(view.rv)
    block, row = sch.split(row, [None, rows])
    sch.reorder(*batch, block, row, column, depth)
    return parallel(sch, [*batch, block])


def _by_rows(sch: Any, softmax: list[BlockView], task: Any, target: Target) -> None:
    """Compute a softmax in the loop over blocks, row by row."""
    *before, last = softmax
    sch.compute_at(last.rv, task, preserve_unit_loops=True)
    row = sch.get_loops(last.rv)[-2]
    for one in reversed(before):
        sch.compute_at(one.rv, row, preserve_unit_loops=True)
    for one in softmax:
        if not one.is_reduction:
            vectorized(sch, sch.get_loops(one.rv)[-1], target)


def _in_lanes(state: State, softmax: list[BlockView], target: Target) -> list[Any]:
    """Reduce rows in vectors; the blocks that start it."""
    vectors = state.choose("accumulators", ACCUMULATORS)
    reductions = [one.rv for one in softmax if one.is_reduction]
    return [reduced_in_lanes(state.sch, one, vectors, target) for one in reductions]


def _write_out(
    state: State, view: BlockView, epilogue: BlockView, tile: tuple[int, int], target: Target
) -> Any:
    """Tile a product within its block of rows; the stage that starts it."""
    sch = state.sch
    *_, row, column, depth = sch.get_loops(view.rv)
    columns = extent(sch, column)
    outer, inner = [], []
    for loop, size in zip((row, column), tile, strict=True):
        whole = extent(sch, loop)
        over, within = sch.split(loop, [None, size])
        if whole % size:
            partitioned(sch, over)
        outer.append(over)
        inner.append(within)
    reduced, written = unrolled_innermost(state, [depth], by_lane=takes_lanes(view, tile, target))
    sch.reorder(*reversed(outer), *reduced, *written, *inner)
    for loop in written:
        sch.unroll(loop)
    sch.reverse_compute_at(epilogue.rv, outer[0], preserve_unit_loops=True)
    written_out(sch, epilogue.rv, 2, target)
    # A scope of its own, so that these do not share memory with what does not stay in registers.
    sch.set_scope(view.rv, 0, "local")
    init = write_out_tile(sch, view, tile, [*reduced, *written][0], target)
    cut_columns(sch, [init, view.rv, epilogue.rv], columns, tile[1])
    return init
