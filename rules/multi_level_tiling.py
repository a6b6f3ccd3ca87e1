"""Multi-level tiling: SSRSRS, three levels of the result's axes around two of the reducing ones.

for i, j: for k: c[i, j] += a[i, k] * b[k, j]
-->
parallel i0, j0:
    for i1, j1: for k0: for i2, j2: for k1: for i3, j3 (vector): c[i, j] += a[i, k] * b[k, j]

All sizes are free (Ansor, section 4.1). It is for contractions that no register tile fits.
"""

from ansor_deploy.space import multi_level as m
from ansor_deploy.space.rule import ApplyAndSkipRest

NAME = "multi-level-tiling"
KINDS = ("llvm",)


def applies(state, block, target):
    return m.unfit(state, block) or ApplyAndSkipRest()


def apply(state, block, target):
    levels = m.tile(state, state.block(block), target)
    m.finish(state, block, levels, target)
    return [state]
