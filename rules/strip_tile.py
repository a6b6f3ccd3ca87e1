"""Strip tile: a micro-kernel over strips of rows, each padded just before it is read.

for h, w, c: p[h, w, c] = pad(x)
for h, w, c: for r, s: out[h, w, c] += p[h + r, w + s, c] * k[r, s, c]
for h, w, c: y[h, w, c] = epilogue(out[h, w, c])
-->
parallel h / H, c / C:
    for H + r, w + s, C: p[h, w, C] = pad(x)
    for H, w / W:
        for W, C: acc[W, C] = 0
        for r: for s, W (unrolled), C (vectors): acc[W, C] += p[h + r, w + s, C] * k[r, s, C]
        for W (unrolled), C (vectors): y[h, w, C] = epilogue(acc[W, C])
"""

from ansor_deploy.space import Apply, Pass, Strips, strips_pay, tile_strips

NAME = "strip-tile"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if reason := view.has_no_register_tile():
        return reason
    if Strips.of(view) is None:
        return Pass("it reads no rows that are padded for it")
    return Apply(later=not strips_pay(view, target))


def apply(state, block, target):
    tile_strips(state, state.view(block), target)
    return [state]
