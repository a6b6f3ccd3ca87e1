"""Recurrence: of a layer's step, the products of a tile of units stay in registers for their gates.

for t:
    for b, p, g, l: for k: s[b, p, g, l] += h[b, k] * w[p, k, g, l]
    for b, p, l: n[b, p, l] = cell(s[b, p, :, l])
-->
for t:
    for p / P (parallel): for b / B:
        for k: for B, P, g (unrolled): for l (vectors): s += h[b, k] * w[p, k, g, l]
        for B, P (unrolled): for l (vectors): n[b, p, l] = cell(s[b, p, :, l])

p are panels of units, g their gates. Of bytes, k is a group of four, which are added up at once. A
step waits for the one before: where several cores share it, each step starts a parallel loop, which
is a choice; two directions are shared as they are.
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

# Sums in registers that hide behind each other: with fewer, each waits for its own last one. More
# panels than that are slower, since they lie apart.
ENOUGH = 4
# Registers for an element of the state and what else a step holds.
SPARE_REGISTERS = 2
# Multiplications of a step from which on it is shared by guess.
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
    """The products of a step, in order."""
    steps = sch.get_child_blocks(sch.get_sblock(block))
    within = [BlockView(sch, rv) for step in steps for rv in sch.get_child_blocks(step)]
    return [view for view in within if view.is_contraction]


def _tile(state, product, target, shares):
    """Give a product and its cell tiles of some sequences and panels.

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
    # A block without its init is no reduction any more: annotate first, then decompose.
    init = sch.decompose_reduction(product.rv, k)
    written_out(sch, init, len(tile), target)


def _tiles(product, target):
    """Tiles as (sequences, panels) whose sums registers hold, few first; which of them is best."""
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
