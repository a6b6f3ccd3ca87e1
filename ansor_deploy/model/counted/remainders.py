"""Remainders of sizes that a run decides, written so that sums with them cancel out.

    m = Mod(-n, 8)   ->   m = -n - ((-n + 8 k) / 8 - k) * 8        k: so that nothing is below zero

Then `n + m` is known to be a multiple of 8, and a Reshape to rows of 8 fits.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from onnx import NodeProto

from ..graph.graph import FLOATS, is_op
from ..onnx.skeleton import attribute
from ..operators.emitter import Emitter, expanded
from .known import Known
from .numbers import Sum, least


def opened(known: Known, node: NodeProto, ahead: deque[NodeProto]) -> bool:
    """Put ahead the nodes that replace the remainder of a size; False for other nodes."""
    if not is_op(node, "Mod") or attribute(node, "fmod", 0):
        return False
    given = [known.values(name) for name in node.input]
    sizes = [one.item() for one in given if one is not None and one.size == 1]
    whole = known.graph.dtypes.get(node.input[0]) not in FLOATS
    if len(sizes) < 2 or not whole or not isinstance(sizes[0], Sum) or isinstance(sizes[1], Sum):
        return False
    if sizes[1] <= 0:
        return False
    made = expanded(known.graph, node, partial(_remainder, number=sizes[0], by=sizes[1]))
    ahead.extendleft(reversed(made or []))
    return True


def _remainder(emit: Emitter, number: Sum, by: int) -> str:
    """A number minus the largest multiple that is not above it."""
    kind = emit.graph.dtypes[emit.input(0)]
    more = max(0, -(least(number) // by))
    divisor = emit.constant(by, kind)
    above = emit("Add", emit.input(0), emit.constant(more * by, kind))
    times = emit("Sub", emit("Div", above, divisor), emit.constant(more, kind))
    return emit("Sub", emit.input(0), emit("Mul", times, divisor))
