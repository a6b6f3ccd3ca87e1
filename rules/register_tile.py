"""Register tile: a micro-kernel that fills the vector registers with accumulators.

for h, w, c: for k: out[h, w, c] += a[h, w, k] * weight[k, c]
for h, w, c: y[h, w, c] = epilogue(out[h, w, c])
-->
parallel c / C, h, w / W:
    for W, C: acc[W, C] = 0
    for k: for W (unrolled), C (vectors): acc[W, C] += a[w, k] * packed[c / C, k, C]
    for W (unrolled), C (vectors): y[w, C] = epilogue(acc[W, C])

All reductions run outside the tile, so an accumulator is loaded and stored once. Constant weights
are packed in this order when the model is built, others in each run.
"""

from ansor_deploy.space import Apply, ApplyAndSkipRest, tile_reduction

NAME = "register-tile"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    tiled = Apply() if view.is_contraction else ApplyAndSkipRest()
    return view.has_no_register_tile() or tiled


def apply(state, block, target):
    tile_reduction(state, state.view(block), target)
    return [state]
