"""Split axes: an axis that runs over several axes of an operand becomes one axis for each of them.

for i: y[i] = x[i % 3136, i / 3136]
-->
for c, p: y[c * 3136 + p] = x[p, c]

A block reads this way after a transpose and a reshape. The rules are asked about it again, and then
see along which axis an operand is contiguous.
"""

from itertools import pairwise

from ansor_deploy.space import SPATIAL, ApplyAndSkipRest, Pass, divisions, tirx, uses

NAME = "split-axes"
KINDS = ("llvm",)

# An innermost axis of this many elements is worth a loop over vectors.
FEW = 8


def applies(state, block, target):
    view = state.view(block)
    if reason := view.is_no_pass():
        return reason
    if view.producers:
        return Pass("the rules of what it reads go through it")
    if not _split(view):
        return Pass("each axis of it is one of its operands")
    return view.divides_what_it_shifts() or ApplyAndSkipRest()


def apply(state, block, target):
    view = state.view(block)
    at, strides = _split(view)
    _split_axis(state.sch, view, at, strides)
    return [state.again()]


def _split(view):
    """The first axis to split and the strides of the parts, outermost first; or None."""
    axes = view.axes(SPATIAL)
    for at, axis in enumerate(axes):
        extent = int(axis.dom.extent)
        strides = _strides(view, axis.var, axes)
        whole = all(outer % inner == 0 for outer, inner in pairwise([extent, *strides]))
        if strides and whole and (at < len(axes) - 1 or strides[-1] >= FEW):
            return at, strides
    return None


def _strides(view, axis, axes):
    """Numbers that an index both divides an axis by and takes its remainder of, largest first."""
    others = [one.var for one in axes if not one.var.same_as(axis)]

    def divisors(kind):
        terms = divisions(view.node.body, kind)
        own = [(term, by) for term, by in terms if uses(term, axis)]
        return {by for term, by in own if not any(uses(term, other) for other in others)}

    return sorted(divisors("FloorDiv") & divisors("FloorMod"), reverse=True)


def _split_axis(sch, view, at, strides):
    """Split an axis into one for each stride and one for the last remainder.

    strides: outermost first. The first divides the extent, each other one the stride before it.
    """

    def parts(*indices):
        found, rest = [], indices[at]
        for stride in strides:
            found.append(rest // stride)
            rest = rest % stride
        return [*indices[:at], *found, rest, *indices[at + 1 :]]

    dtype = view.node.iter_vars[at].var.ty.dtype
    index_map = tirx.IndexMap.from_func(parts, len(view.spatial), index_dtype=dtype)
    sch.transform_block_layout(view.rv, index_map)
