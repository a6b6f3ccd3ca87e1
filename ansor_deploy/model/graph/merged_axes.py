"""Transposes of a tensor whose first axes are one meanwhile: they need no reshapes.

    (a, b, c, d) -> Reshape (ab, c, d) -> Transpose (ab, d, c) -> Reshape (a, b, d, c)
    -->
    (a, b, c, d) -> Transpose (a, b, d, c)

Torch's newer exporter turns the keys of attention like that. A transpose alone is known to all that
follows: a cache is stored as its reader wants it, and attention becomes one task.
"""

from __future__ import annotations

from onnx import NodeProto, helper

from ..onnx.skeleton import attribute
from .graph import Graph, is_op


def split_merged_axes(graph: Graph) -> None:
    """Replace a Reshape, a Transpose and a Reshape by the Transpose that they are."""
    made = graph.producers()
    for last in [node for node in graph.nodes if is_op(node, "Reshape")]:
        turn = made.get(last.input[0])
        first = made.get(turn.input[0]) if turn is not None and is_op(turn, "Transpose") else None
        if turn is None or first is None or not is_op(first, "Reshape"):
            continue
        if order := _order(graph, first, attribute(turn, "perm"), last):
            names = first.input[:1], last.output, last.name
            graph.replace(last, [helper.make_node("Transpose", *names, perm=order)])


def _order(
    graph: Graph, first: NodeProto, perm: list[int] | None, last: NodeProto
) -> list[int] | None:
    """The axis order of the one Transpose; None if there is none."""
    before, merged, after = (
        graph.shapes.get(name, ()) for name in (first.input[0], first.output[0], last.output[0])
    )
    if perm is None or perm[0] != 0 or len(before) <= len(merged):
        return None
    ahead = len(before) - len(merged) + 1  # axes that are one
    behind = [ahead - 1 + axis for axis in perm[1:]]
    order = [*range(ahead), *behind]
    fits = merged[1:] == before[ahead:] and after == tuple(before[axis] for axis in order)
    return order if fits else None
