"""Attention: scores, their softmax and the product with the values, by blocks of query rows.

for q, k: for d: s[q, k] += query[q, d] * key[d, k]
for q, k: p[q, k] = softmax(mask(s[q, k]))
for q, d: for k: y[q, d] += p[q, k] * value[k, d]
-->
parallel q / Q:
    for k / K, Q / R: s[R, K] = mask(query[R, :] * key[:, K])      in registers
    for Q: p[k] = softmax(s[k])
    for d / D, Q / R: y[R, D] = p[R, :] * value[:, D]              in registers

The scores of a block stay in a core's cache. Q divides the number of rows, so all blocks have the
same shape. Tiles divide Q too, except where Q is all rows.
"""

from dataclasses import dataclass

from ansor_deploy.space import (
    ApplyAndSkipRest,
    BlockView,
    Pass,
    blocks,
    cut_columns,
    extent,
    pack_operands,
    parallel,
    partitioned,
    query_blocks,
    reduced_in_lanes,
    takes_lanes,
    tiles_within,
    unrolled_innermost,
    vectorized,
    write_out_tile,
    written_out,
)

NAME = "attention"
KINDS = ("llvm",)

# How many registers hold partial sums, or maxima, of a row; the guess first.
ACCUMULATORS = (4, 2, 8)


def applies(state, block, target):
    view = state.view(block)
    if not view.is_contraction or _Attention.of(view) is None:
        return Pass("it weighs nothing by a softmax of products")
    return ApplyAndSkipRest()


def apply(state, block, target):
    attention = _Attention.of(state.view(block))
    sch, weighted, scores = state.sch, attention.weighted, attention.scores
    if weighted.epilogue is None:
        sch.cache_write(weighted.rv, 0, "global")
    (epilogue,) = weighted.consumers
    masked, *softmax = _stages(sch, attention)
    options, guess = query_blocks([*weighted.spatial[:-1], *weighted.reduced], target)
    rows = state.choose("rows", options, guess, ordered=True)
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
    return [state]


@dataclass(frozen=True)
class _Attention:
    """The product of queries and keys, its softmax, and the product of the softmax and values.

    weighted: the last product. scores: the first. stages: the ones between them, in order.
    """

    weighted: BlockView
    scores: BlockView
    stages: tuple[BlockView, ...]

    @classmethod
    def of(cls, view):
        """The attention that ends with this product, or None where the product ends none."""
        names, products, pending = set(), {}, view.producers
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

    def _is_by_rows(self):
        """Whether each stage has the rows of both products, and no other block reads a stage."""
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


def _stages(sch, attention):
    """The remaining stages: first one that masks (or copies) the scores, then the softmax.

    Elementwise stages that no reduction reads are inlined; what a reduction reads is computed once.
    """
    for one in attention.stages[:-1]:
        if not one.is_reduction and not _is_reduced(one):
            sch.compute_inline(one.rv)
    if _is_reduced(attention.scores):
        sch.cache_write(attention.scores.rv, 0, "global")
    found = _Attention.of(attention.weighted)
    if found is None or found.stages[0].is_reduction:
        raise ValueError("its rows are no rows of both products")
    return list(found.stages)


def _is_reduced(view):
    return any(user.is_reduction for user in view.consumers)


def _tile(state, about, view, rows, target):
    """Choose the size of a product's tiles in a block of rows: (rows, columns)."""
    offered = tiles_within(view, target, rows)
    if not offered:
        raise ValueError("no tile fits the registers")
    *_, height, width = state.choose(about, offered, ordered=True)
    return height, width


def _blocks_of_rows(sch, view, rows):
    """Split a product's rows into blocks. Returns the parallel loop over the blocks."""
    *batch, row, column, depth = sch.get_loops(view.rv)
    block, row = sch.split(row, [None, rows])
    sch.reorder(*batch, block, row, column, depth)
    return parallel(sch, [*batch, block])


def _by_rows(sch, softmax, task, target):
    """Move the softmax into the loop over blocks, where it is computed row by row."""
    *before, last = softmax
    sch.compute_at(last.rv, task, preserve_unit_loops=True)
    row = sch.get_loops(last.rv)[-2]
    for one in reversed(before):
        sch.compute_at(one.rv, row, preserve_unit_loops=True)
    for one in softmax:
        if not one.is_reduction:
            vectorized(sch, sch.get_loops(one.rv)[-1], target)


def _in_lanes(state, softmax, target):
    """Reduce rows with vectors. Returns the blocks that initialise the reductions."""
    vectors = state.choose("accumulators", ACCUMULATORS)
    reductions = [one.rv for one in softmax if one.is_reduction]
    return [reduced_in_lanes(state.sch, one, vectors, target) for one in reductions]


def _write_out(state, view, epilogue, tile, target):
    """Tile a product within its block of rows. Returns the block that initialises it."""
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
    written_out(sch, epilogue.rv, 2, target, columns=tile[1])
    # With a scope of their own, accumulators share no memory with buffers outside registers.
    sch.set_scope(view.rv, 0, "local")
    init = write_out_tile(sch, view, tile, [*reduced, *written][0], target)
    cut_columns(sch, [init, view.rv, epilogue.rv], columns, tile[1])
    return init
