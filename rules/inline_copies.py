"""Inline copies: what was transposed, reshaped or sliced before a pass is read where it lies.

for c, p: b[c, p] = a[p, c]
for i: y[i] = b[i / 3136, i % 3136]
-->
for i: y[i] = a[i % 3136, i / 3136]

The rules after this one ask in which order a pass reads.
"""

from ansor_deploy.space import ApplyAndSkipRest, Pass, inline_producers

NAME = "inline-copies"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if view.is_reduction or view.has_several_results():
        return Pass("it is no pass over its results")
    copies = [one for one in view.producers if one.is_copy and not one.stays]
    return ApplyAndSkipRest() if copies else Pass("it reads no copy")


def apply(state, block, target):
    inline_producers(state.sch, state.block(block))
    return [state.again()]
