"""Add cache stage: a result without an elementwise consumer gets one, its copy to memory.

for i: for k: c[i] += a[i, k]
-->
for i: for k: acc[i] += a[i, k]
for i: c[i] = acc[i]

The tiles of the rules that follow then accumulate in a small buffer and write each result once.
"""

from ansor_deploy.space import blocks as b
from ansor_deploy.space import loops as l
from ansor_deploy.space.rule import ApplyAndSkipRest, Pass

NAME = "add-cache-stage"
KINDS = ("llvm",)


def applies(state, block, target):
    node = state.sch.get(state.block(block))
    if not b.is_reduction(node):
        return Pass("it reduces nothing")
    if len(node.writes) != 1:
        return Pass("it computes several results at once")
    if not b.is_contraction(node) and not b.keeps_contiguous_axis(node):
        return Pass("its lanes are partial results, which no tile accumulates")
    if l.epilogue(state.sch, state.block(block)) is not None:
        return Pass("its consumer already is such a stage")
    return ApplyAndSkipRest()


def apply(state, block, target):
    state.sch.cache_write(state.block(block), 0, "global")
    return [state.again()]
