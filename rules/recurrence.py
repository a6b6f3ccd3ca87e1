"""Recurrence: in each step, a tile's products stay in registers until its units' gates use them.

for t:
    for b, p, g, l: for k: s[b, p, g, l] += h[b, k] * w[p, k, g, l]
    for b, p, l: n[b, p, l] = cell(s[b, p, :, l])
-->
for t:
    for p / P (parallel): for b / B:
        for k: for B, P, g (unrolled): for l (vectors): s += h[b, k] * w[p, k, g, l]
        for B, P (unrolled): for l (vectors): n[b, p, l] = cell(s[b, p, :, l])

p are panels of units, g their gates. With int8 operands, k is a group of four steps, which one
instruction adds up. A step waits for the one before it, so sharing steps among the cores starts a
parallel loop in each step: that is a choice. The two directions of a bidirectional layer are
parallel already.
"""

import math

from ansor_deploy.space import (
    ApplyAndSkipRest,
    BlockView,
    Pass,
    collect,
    divisors,
    lanes,
    parallel,
    summed_at_once,
    tirx,
    written_out,
)

NAME = "recurrence"
KINDS = ("llvm",)

# As many independent sums hide the latency of a multiply-add. With more panels than this gives, a
# tile is slower, since panels lie apart in memory.
ENOUGH = 4
# Registers that are kept free for an element of the state and other values of a step.
SPARE_REGISTERS = 2
# The guess shares a step among the cores from this many multiplications.
WORTH_CORES = 1 << 18


def applies(state, block, target):
    if not state.view(block).holds_blocks:
        return Pass("it is no loop over steps")
    return ApplyAndSkipRest() if _products(state.sch, block) else Pass("no step multiplies")


def apply(state, block, target):
    loops = collect(state.view(block).node.body, tirx.For)
    alone = all(loop.kind != tirx.ForKind.PARALLEL for loop in loops)
    for product in _products(state.sch, block):
        state.node = product.name
        _tile(state, product, target, alone and target.cores > 1)
    state.finish(state.block(block))
    return [state]


def _products(sch, block):
    """The products in the steps, in program order."""
    steps = sch.get_child_blocks(sch.get_sblock(block))
    within = [BlockView(sch, rv) for step in steps for rv in sch.get_child_blocks(step)]
    return [view for view in within if view.is_contraction]


def _tile(state, product, target, shares):
    """Tile a product and its cell by sequences and panels.

    shares: whether cores may share a step.
    """
    sch, (cell,) = state.sch, product.consumers
    panels, work = product.spatial[1], math.prod(product.spatial + product.reduced)
    offered, guess = _tiles(product, target)
    rows, width = state.choose("register", offered, guess)
    b, p, lane = sch.get_loops(cell.rv)
    (b, row), (p, panel) = sch.split(b, [None, rows]), sch.split(p, [None, width])
    sch.reorder(p, b, row, panel, lane)
    sch.compute_at(product.rv, b, preserve_unit_loops=True)
    loops = sch.get_loops(product.rv)[2:]
    tile, (k, *steps) = loops[: len(product.spatial)], loops[len(product.spatial) :]
    sch.reorder(k, *tile, *steps)
    sch.set_scope(product.rv, 0, "local")
    for fours in steps:
        summed_at_once(sch, fours)
    written_out(sch, product.rv, len(tile), target, steps)
    written_out(sch, cell.rv, 3, target)
    if (
        shares
        and width < panels
        and state.choose("parallel", (False, True), int(work >= WORTH_CORES))
    ):
        parallel(sch, [p])
    # Annotate before decomposing: without its init the block is no reduction any more.
    init = sch.decompose_reduction(product.rv, k)
    written_out(sch, init, len(tile), target)


def _tiles(product, target):
    """Tiles whose sums fit the registers, (sequences, panels), small first; the guess's index."""
    batch, panels, gates, units = product.spatial
    each = gates * max(1, units // lanes(target))
    room = max(each, target.vector_registers - SPARE_REGISTERS)
    found = sorted(
        ((r, w) for r in divisors(batch) for w in divisors(panels) if each * r * w <= room),
        key=lambda tile: (math.prod(tile), tile[1]),
    )
    rows = max(r for r, width in found if width == 1)
    few = [width for r, width in found if r == rows and each * rows * width <= ENOUGH]
    return found, found.index((rows, max(few, default=1)))
