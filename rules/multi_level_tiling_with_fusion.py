"""Multi-level tiling with fusion: multi-level tiling with the consumer computed in each tile.

for i, j: for k: c[i, j] += a[i, k] * b[k, j]
for i, j: d[i, j] = max(c[i, j], 0)
-->
parallel i0, j0:
    for i1, j1:
        for k0: for i2, j2: for k1: for i3, j3 (vector): c[i, j] += a[i, k] * b[k, j]
        for i2, i3, j2, j3: d[i, j] = max(c[i, j], 0)        here, or after i1, j1

The rule gives two structures: the consumer follows the second level of tiles, or the first.
"""

from ansor_deploy.space import (
    Apply,
    ApplyAndSkipRest,
    Pass,
    finish_levels,
    inline_producers,
    multi_level_tile,
    vectorized,
)

NAME = "multi-level-tiling-with-fusion"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if unfit := view.reuses_nothing() or view.has_several_results() or view.is_single_number():
        return unfit
    if view.epilogue is None:
        return Pass("nothing consumes it element by element")
    # Only this rule needs a cache stage: unfused tiles can write the result directly.
    return ApplyAndSkipRest() if view.epilogue.is_copy else Apply()


def apply(state, block, target):
    return [_fused(state.copy(), block, target, level) for level in (1, 0)]


def _fused(state, block, target, level):
    sch = state.sch
    consumer = state.view(block).epilogue
    inline_producers(sch, consumer.rv)
    levels = multi_level_tile(state, state.view(block), target)
    sch.reverse_compute_at(consumer.rv, levels[level][-1], preserve_unit_loops=True)
    vectorized(sch, sch.get_loops(consumer.rv)[-1], target)
    state.finish(consumer.rv)
    finish_levels(state, block, levels, target)
    return state
