"""Remainders of sizes that a run decides, written so that sums with them cancel out.

    m = Mod(-n, 8)   ->   m = -n - ((-n + 8 k) / 8 - k) * 8        k: so that nothing is below zero

Then `n + m` is known to be a multiple of 8, and a Reshape to rows of 8 fits.
"""

from __future__ import annotations

from collections import deque
from functools import partial, reduce

from onnx import NodeProto

from ..graph.graph import FLOATS, is_op
from ..onnx.skeleton import attribute
from ..operators.emitter import INT64, Emitter, expanded
from .known import Known
from .numbers import Number, Sum, Symbol, least
from .values import objects


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
    made = expanded(known.graph, node, partial(_remainder, known, number=sizes[0], by=sizes[1]))
    ahead.extendleft(reversed(made or []))
    return True


def _remainder(known: Known, emit: Emitter, number: Sum, by: int) -> str:
    """A number minus the largest multiple that is not above it."""
    kind = emit.graph.dtypes[emit.input(0)]
    given, rest = _reduced(known, emit, number, by)
    more = max(0, -(least(rest) // by))
    divisor = emit.constant(by, kind)
    above = emit("Add", given, emit.constant(more * by, kind))
    times = emit("Sub", emit("Div", above, divisor), emit.constant(more, kind))
    return emit("Sub", given, emit("Mul", times, divisor))


def _reduced(known: Known, emit: Emitter, number: Sum, by: int) -> tuple[str, Number]:
    """The number without multiples of `by`, whose remainder is the same: (its tensor, it).

    Else n + (4 - n % 4) % 4 would be a sum of two quotients, each with bounds of its own.
    """
    given, kind = emit.input(0), emit.graph.dtypes[emit.input(0)]
    rest: Number = number
    for term, times in number.factors:
        if times % by == 0:
            elements = [_element(known, emit, one, kind) for one in term.parts]
            part = reduce(partial(emit, "Mul"), elements)
            given = emit("Sub", given, emit("Mul", part, emit.constant(times, kind)))
            rest = rest - Sum(0, ((term, times),))
    return given, rest


def _element(known: Known, emit: Emitter, one: Symbol, kind: int) -> str:
    flat = emit("Reshape", one.tensor, emit.constant([-1], INT64))
    made = emit("Gather", flat, emit.constant(one.at, INT64), axis=0)
    known.hold(made, objects(Sum(0, ((one, 1),))))
    return emit.cast(made, kind)
