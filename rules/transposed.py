"""Transposed convolution: a micro-kernel that skips the zeros that a stride inserts.

for h, w, c: for r, s, k: out[h, w, c] += (a[(h + r) / 2, ..] if (h + r) % 2 == 0 ..) * weight[..]
-->
parallel c / C, h / 2, w / (2 W):
    for r / 2, s / 2, k: for r % 2, s % 2, h % 2, w % (2 W) (all unrolled), C (vectors):
        acc[h, w, C] += a[..] * weight[..]      only where h + r and w + s are even

An input that is spread by a stride is nonzero only where the remainders of position and tap match.
Once the remainders are unrolled, these conditions are constants and the zero terms disappear.
"""

from ansor_deploy.space import Apply, Pass, divisions, tile_reduction, uses

NAME = "transposed"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if not view.is_contraction or not _phases(view):
        return Pass("it reads no input that is spread by a stride")
    return view.lacks_epilogue() or Apply()


def apply(state, block, target):
    view = state.view(block)
    tile_reduction(state, view, target, _phases(view))
    return [state]


def _phases(view):
    """The axes in tests such as (h + r) % stride == 0 that decide where zeros are; the strides."""
    found = {}
    if not view.calls(["if_then_else"]):
        return found
    for term, stride in divisions(view.node.body, "FloorMod"):
        axes = [axis for axis in view.node.iter_vars if uses(term, axis.var)]
        kinds = {axis.iter_type for axis in axes}
        if len(axes) == 2 and len(kinds) == 2 and int(axes[0].dom.extent) % stride == 0:
            found.update({axis.var: stride for axis in axes})
    return found
