"""Inline copies: an elementwise pass reads through transposes, reshapes and slices before it.

for c, p: b[c, p] = a[p, c]
for i: y[i] = b[i / 3136, i % 3136]
-->
for i: y[i] = a[i % 3136, i / 3136]

The rules after this one look at the order in which the pass reads its operands.
"""

from ansor_deploy.space import ApplyAndSkipRest, Pass, inline_producers

NAME = "inline-copies"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if reason := view.is_no_pass():
        return reason
    if any(one.stays for one in _before(view)):
        return Pass("the rules of what stays before it ask how it is read")
    copies = any(one.is_copy for one in view.producers)
    return ApplyAndSkipRest() if copies else Pass("it reads no copy")


def apply(state, block, target):
    inline_producers(state.sch, state.block(block))
    return [state.again()]


def _before(view):
    """All blocks that a block depends on, directly or not."""
    found, left = {}, view.producers
    while left:
        one, *left = left
        if one.name not in found:
            left += one.producers
        found[one.name] = one
    return found.values()
