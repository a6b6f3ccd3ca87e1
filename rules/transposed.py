"""Transposed convolution: a micro-kernel that multiplies no inserted zero.

for h, w, c: for r, s, k: out[h, w, c] += (a[(h + r) / 2, ..] if (h + r) % 2 == 0 ..) * weight[..]
-->
parallel c / C, h / 2, w / (2 W):
    for r / 2, s / 2, k: for r % 2, s % 2, h % 2, w % (2 W) (all unrolled), C (vectors):
        acc[h, w, C] += a[..] * weight[..]      only where h + r and w + s are even

An input that is spread by a stride is nonzero only for matching remainders of position and tap.
With the remainders written out the conditions are constants, and the zero terms disappear.
"""

from ansor_deploy._tvm import structural_walk, tirx
from ansor_deploy.space import blocks as b
from ansor_deploy.space import loops as l
from ansor_deploy.space.register_tile import tile_reduction
from ansor_deploy.space.rule import ApplyAndSkipRest, Pass

NAME = "transposed"
KINDS = ("llvm",)


def applies(state, block, target):
    node = state.sch.get(state.block(block))
    if not b.is_contraction(node) or not _phases(node):
        return Pass("it reads no input that is spread by a stride")
    if l.epilogue(state.sch, state.block(block)) is None:
        return Pass("nothing consumes it element by element: a cache stage comes first")
    return ApplyAndSkipRest()


def apply(state, block, target):
    reduction = state.block(block)
    tile_reduction(state, reduction, target, _phases(state.sch.get(reduction)))
    return [state]


def _phases(node):
    """The stride of each axis whose remainder decides, with another's, what is zero."""
    found = {}

    def visit(remainder):
        if not isinstance(remainder.b, tirx.IntImm):
            return
        stride = int(remainder.b.value)
        axes = [axis for axis in node.iter_vars if b.uses(remainder.a, axis.var)]
        kinds = {axis.iter_type for axis in axes}
        if len(axes) == 2 and len(kinds) == 2 and int(axes[0].dom.extent) % stride == 0:
            found.update({axis.var: stride for axis in axes})

    if b.has_call(node, "if_then_else"):
        structural_walk(node.body, (tirx.FloorMod, visit))
    return found
