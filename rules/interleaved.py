"""Interleaved: a few planes become the channels of one image, a vector of each plane at a time.

for p, c (of 3): b[p, c] = f(a[c, p])
-->
parallel p / 64: for c (interleaved): for p % 64 (vector): b[p, c] = f(a[c, p])

A tile of a transposition would be only as wide as the few channels: each element would take a load
and a store of its own.
"""

import math

from ansor_deploy.space import (
    MOST_INTERLEAVED,
    ApplyAndSkipRest,
    Pass,
    fused,
    interleave,
    parallel,
    vectorized,
)

NAME = "interleaved"
KINDS = ("llvm",)

# A stage with fewer elements than this gains nothing.
FEW = 1 << 10


def applies(state, block, target):
    view = state.view(block)
    if reason := view.is_no_pass():
        return reason
    if math.prod(view.spatial) < FEW:
        return Pass("it is small")
    if not 1 < view.spatial[-1] <= MOST_INTERLEAVED:
        return Pass("it does not end in a few channels")
    return Pass("it reads no planes") if _places(view) is None else ApplyAndSkipRest()


def apply(state, block, target):
    sch, view = state.sch, state.view(block)
    first, (result,) = _places(view), view.node.writes
    *loops, channel = sch.get_loops(view.rv)[-len(view.spatial) :]
    places = vectorized(sch, fused(sch, loops[first:]), target, result.source.dtype.bits)
    sch.reorder(channel, sch.get_loops(view.rv)[-2])
    interleave(sch, channel)
    parallel(sch, [*loops[:first], places])
    state.finish(view.rv)
    return [state]


def _places(view):
    """The first of the outer axes that are contiguous together in an operand; or None.

    The operand's last axis must have a stride, so that the last axis counts planes.
    """
    extents = view.spatial
    for *outer, last in view.steps:
        first, step = len(outer), 1
        while first > 0 and outer[first - 1] == step:
            first, step = first - 1, step * extents[first - 1]
        if first < len(outer) and step > 1 and last not in (None, 0, 1):
            return first
    return None
