"""Elements of a tensor that is split into a sequence, as parts of the tensor.

s = SplitToSequence(x, [16, 16, 16]) ; y = SequenceAt(s, 2)   -->   y = Slice(x, 32, 48)

Exporters write a split of a scripted module so. Nodes that nothing reads then are dropped later.
"""

from __future__ import annotations

from itertools import accumulate

from .known import Axes, Step
from .values import certain


def split(step: Step) -> None:
    """Note the bounds of the parts, if they are known; the node stays."""
    shape = step.known_shape(step.input(0))
    values = step.values(1) if step.input(1) else None
    if shape is None or step.axes(0) or values is None or not values.ndim:
        return
    axis, sizes = step.attribute("axis", 0) % len(shape), certain(values)
    if sizes is not None and sum(sizes) == shape[axis]:
        ends = [*accumulate(sizes)]
        parts = [(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        step.facts.parts[step.node.output[0]] = (step.input(0), axis, parts)


def picked(step: Step) -> list[tuple[str, Axes]] | None:
    """The part of a tensor that a sequence holds at a place."""
    found, place = step.facts.parts.get(step.input(0)), certain(step.values(1))
    if found is None or place is None:
        return None
    data, axis, parts = found
    if not -len(parts) <= place[0] < len(parts):
        return None
    begin, end = parts[place[0]]
    return [(step("Slice", data, *(step.numbers(n) for n in (begin, end, axis))), {})]


RULES = {"SequenceAt": picked, "SplitToSequence": split}
