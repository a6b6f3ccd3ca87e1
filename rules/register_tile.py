"""Register tile: a micro-kernel whose accumulators fill the vector registers.

for h, w, c: for k: out[h, w, c] += a[h, w, k] * weight[k, c]
for h, w, c: y[h, w, c] = epilogue(out[h, w, c])
-->
parallel c / C, h, w / W:
    for W, C: acc[W, C] = 0
    for k: for W (unrolled), C (vectors): acc[W, C] += a[w, k] * packed[c / C, k, C]
    for W (unrolled), C (vectors): y[w, C] = epilogue(acc[W, C])

All reductions run outside the tile, so an accumulator is loaded and stored once. Constant
weights are packed to match when the model is built, others while it runs.
"""

from ansor_deploy.space import blocks as b
from ansor_deploy.space import loops as l
from ansor_deploy.space.register_tile import tile_reduction
from ansor_deploy.space.rule import ApplyAndSkipRest, Pass

NAME = "register-tile"
KINDS = ("llvm",)


def applies(state, block, target):
    node = state.sch.get(state.block(block))
    if not b.is_reduction(node):
        return Pass("it reduces nothing")
    if len(node.writes) != 1:
        return Pass("it computes several results at once")
    if not b.spatial_vars(node):
        return Pass("its result is a single number")
    if not b.is_contraction(node) and not b.keeps_contiguous_axis(node):
        return Pass("it reduces along the contiguous axis, so lanes would be partial results")
    if l.epilogue(state.sch, state.block(block)) is None:
        return Pass("nothing consumes it element by element: a cache stage comes first")
    return ApplyAndSkipRest()


def apply(state, block, target):
    tile_reduction(state, state.block(block), target, {})
    return [state]
