"""Multi-level tiling: SSRSRS, four levels of the result's axes around two of the reduction's.

for i, j: for k: c[i, j] += a[i, k] * b[k, j]
-->
parallel i0, j0:
    for i1, j1: for k0: for i2, j2: for k1: for i3, j3 (vector): c[i, j] += a[i, k] * b[k, j]

All sizes are free (Ansor, section 4.1). This is the space that Ansor searches: it is far larger
than that of register-tile, and its programs are far slower on average.
"""

from ansor_deploy.space import ApplyAndSkipRest, finish_levels, multi_level_tile

NAME = "multi-level-tiling"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    unfit = view.reuses_nothing() or view.has_several_results() or view.is_single_number()
    return unfit or ApplyAndSkipRest()


def apply(state, block, target):
    levels = multi_level_tile(state, state.view(block), target)
    finish_levels(state, block, levels, target)
    return [state]
