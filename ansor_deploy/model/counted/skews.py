"""Scores of relative positions, shifted by reshapes: each row is a part of a row.

    x [.., t, w] -> Reshape [.., w, t] -> Slice: rows from 1 on -> Reshape [.., t, w - 1]
                 -> Slice, or Gather: the first columns
    -->
    y[.., i, j] = x[.., i, t - i + j]

Transformer-XL's way (Dai et al., 2019, appendix B), in XLNet and conformers. Reshapes divide for
each element where a run decides their extents, and where they are fused with what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from onnx import NodeProto, helper

from ..graph.graph import Graph, is_op
from ..operators.skewed import skew
from . import parts, picks
from .known import Axes, Known, Step
from .numbers import Number, Sum, least, most
from .values import certain


@dataclass(frozen=True)
class Skew:
    """A part of each row of a tensor: `rows` times `columns` from `begin - by * row` on.

    axis: of the rows.
    """

    data: str
    axis: int
    by: int
    begin: Number
    rows: Number
    columns: Number

    def fits(self, dims: Sequence[Number]) -> bool:
        """Whether each part is within its row, in the longest run too. dims: of the data."""
        first = self.begin - (self.rows + -1) * self.by
        width = dims[self.axis + 1]
        behind = width - self.columns - self.begin
        room = most(width) - most(self.columns) - most(self.begin)
        left = dims[self.axis] - self.rows
        return min(room, *map(least, (first, behind, left))) >= 0


def skew_rows(graph: Graph) -> None:
    """Replace such nodes of fixed shapes by one."""
    known = Known(graph)
    known.makers = graph.producers()
    for node in [one for one in graph.nodes if is_op(one, *RULES)]:
        step = Step(known, node)
        if (found := _found(step)) is not None:
            made = helper.make_node("Identity", [_emitted(step, found)], node.output)
            graph.replace(node, [*step.nodes, made])


def sliced(step: Step) -> list[tuple[str, Axes]] | None:
    """A part along some axes, or slices at places, which may be the last of such nodes."""
    found = _found(step)
    if found is None:
        return parts.sliced(step) if is_op(step.node, "Slice") else picks.gathered(step)
    return [(_emitted(step, found), {**step.axes(0), found.axis + 1: found.columns})]


def _emitted(step: Step, found: Skew) -> str:
    numbers = found.begin, step.facts.dims(found.data)[found.axis + 1]
    is_open = any(isinstance(one, Sum) for one in numbers)
    begin = [*map(step.scalar, numbers)] if is_open else most(found.begin)
    return skew(step, found.data, found.axis, found.by, most(found.columns), begin)


def _found(step: Step) -> Skew | None:
    """The part of each row that the nodes make, if it is one."""
    chain = _chain(step.node, step.facts.makers)
    if not chain or not all(one.output[0] in step.graph.shapes for one in chain):
        return None
    high, below, wide = chain
    names = high.input[0], high.output[0], wide.output[0]
    own, turned, rows = map(step.facts.dims, names)
    kept, left = (_part(Step(step.facts, one)) for one in (below, step.node))
    if kept is None or left is None or left.axis != kept.axis + 1:
        return None
    axis = kept.axis
    if any(_apart(one, axis) != _apart(turned, axis) for one in (own, rows)):
        return None
    by = own[axis + 1] - rows[axis + 1]
    if isinstance(by, Sum) or by < 1 or kept.end != turned[axis]:
        return None
    begin = kept.start * turned[axis + 1] + left.start
    found = Skew(high.input[0], axis, by, begin, rows[axis], left.end - left.start)
    return _unpadded(step, found) if found.fits(own) else None


def _apart(dims: Sequence[Number], axis: int) -> tuple[Sequence[Number], Sequence[Number]]:
    """The sizes in front of an axis, and those behind the next one."""
    return (dims[:axis], dims[axis + 2 :]) if len(dims) > axis + 1 else ((), dims)


def _chain(node: NodeProto, makers: Mapping[str, NodeProto]) -> list[NodeProto]:
    """The Reshape, Slice and Reshape in front of a Slice; none if these are others."""
    found: list[NodeProto] = []
    for op in ("Reshape", "Slice", "Reshape"):
        maker = makers.get(node.input[0])
        if maker is None or not is_op(maker, op):
            return []
        found.insert(0, node := maker)
    return found


class _Part(NamedTuple):
    """What a Slice keeps along its only axis."""

    axis: int
    start: Number
    end: Number


def _part(step: Step) -> _Part | None:
    """The part of a Slice along one axis, in steps of one, or of a Gather; None for others."""
    dims = step.dims(0)
    if is_op(step.node, "Gather"):
        count = _first_ones(step)
        return None if count is None else _Part(step.attribute("axis", 0) % len(dims), 0, count)
    bounds = parts.bounds_of(step, len(dims))
    if bounds is None or len(bounds) != 1 or step.nodes:  # nodes: only a run knows it
        return None
    ((axis, (start, end, by)),) = bounds.items()
    if by != 1 or least(start) < 0 or least(end) < 0:
        return None
    return _Part(axis, start, dims[axis] if least(end) >= most(dims[axis]) else end)


def _first_ones(step: Step) -> Number | None:
    """How many of the first elements a Gather picks, in order; None if it picks others."""
    places = step.graph.value(step.input(1))
    if places is not None:
        return len(places) if places.tolist() == [*range(places.size)] else None
    maker = step.facts.makers.get(step.input(1))
    if maker is None or not is_op(maker, "Range"):
        return None
    start, end, by = (step.facts.values(name) for name in maker.input)
    if end is None or certain(start) != [0] or certain(by) != [1]:
        return None
    return end.item()


def _unpadded(step: Step, found: Skew) -> Skew:
    """The same of the data in front of a Pad or Concat, if nothing else of these is read."""
    maker = step.facts.makers.get(found.data)
    ahead = None if maker is None else _padding(Step(step.facts, maker), found.axis + 1)
    if ahead is None:
        return found
    name, width = ahead
    inner = replace(found, data=name, begin=found.begin - width)
    return inner if inner.fits(step.facts.dims(name)) else found


def _padding(step: Step, axis: int) -> tuple[str, Number] | None:
    """What a node lays something in front of along an axis, and how much; None for others."""
    node, dims = step.node, step.facts.dims
    if is_op(node, "Concat") and len(node.input) == 2:
        first, data = node.input
        along = step.attribute("axis", 0) % len(dims(data))
        return (data, dims(first)[axis]) if along == axis else None
    pads = step.values(1) if is_op(node, "Pad") and not step.input(3) else None
    if pads is None or any(n != 0 for at, n in enumerate(pads) if at != axis):
        return None
    return (node.input[0], pads[axis]) if least(pads[axis]) >= 0 else None


RULES = {"Gather": sliced, "Slice": sliced}
