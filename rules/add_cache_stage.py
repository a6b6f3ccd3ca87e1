"""Add cache stage: a reduction without an elementwise consumer gets one, which copies its result.

for i: for k: c[i] += a[i, k]
-->
for i: for k: acc[i] += a[i, k]
for i: c[i] = acc[i]

The tiles of later rules can then accumulate in a small buffer and write each result once.
"""

from ansor_deploy.space import Apply, ApplyAndSkipRest, Pass

NAME = "add-cache-stage"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if reason := view.reduces_nothing() or view.has_several_results() or view.has_partial_lanes():
        return reason
    if view.epilogue is not None:
        return Pass("its consumer already is such a stage")
    return Apply() if view.is_contraction else ApplyAndSkipRest()


def apply(state, block, target):
    state.sch.cache_write(state.block(block), 0, "global")
    return [state.again()]
