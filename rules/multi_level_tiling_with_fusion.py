"""Multi-level tiling with fusion: as multi-level tiling, the consumer computed in a tile.

for i, j: for k: c[i, j] += a[i, k] * b[k, j]
for i, j: d[i, j] = max(c[i, j], 0)
-->
parallel i0, j0:
    for i1, j1:
        for k0: for i2, j2: for k1: for i3, j3 (vector): c[i, j] += a[i, k] * b[k, j]
        for i2, i3, j2, j3: d[i, j] = max(c[i, j], 0)        here, or after i1, j1

Gives two structures, the consumer after the first level of tiles and after the second.
"""

from ansor_deploy.space import loops as l
from ansor_deploy.space import multi_level as m
from ansor_deploy.space.rule import Apply, Pass

NAME = "multi-level-tiling-with-fusion"
KINDS = ("llvm",)


def applies(state, block, target):
    if reason := m.unfit(state, block):
        return reason
    if l.epilogue(state.sch, state.block(block)) is None:
        return Pass("nothing consumes it element by element")
    return Apply()


def apply(state, block, target):
    return [_fused(state.copy(), block, target, level) for level in (1, 0)]


def _fused(state, block, target, level):
    sch = state.sch
    consumer = l.epilogue(sch, state.block(block))
    levels = m.tile(state, state.block(block), target)
    place = levels[level][-1]
    sch.reverse_compute_at(consumer, place, preserve_unit_loops=True)
    _, lane = l.split_lanes(sch, sch.get_loops(consumer)[-1], target)
    if l.extent(sch, lane) > 1:
        sch.vectorize(lane)
    state.done.add(sch.get(consumer).name_hint)
    m.finish(state, block, levels, target)
    return state
