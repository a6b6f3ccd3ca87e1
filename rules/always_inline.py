"""Always inline: an elementwise stage disappears into its consumers.

for i: b[i] = a[i] + 1
for i: c[i] = b[i] * 2
-->
for i: c[i] = (a[i] + 1) * 2

A stage that is costly and read many times (padding, exponentials before a reduction) stays.
"""

from ansor_deploy.space import ApplyAndSkipRest, Pass

NAME = "always-inline"
KINDS = ("llvm", "cuda")


def applies(state, block, target):
    reason = state.view(block).stays
    return Pass(reason) if reason else ApplyAndSkipRest()


def apply(state, block, target):
    state.sch.compute_inline(state.block(block))
    return [state]
