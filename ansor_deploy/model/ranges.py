"""A range of lengths: inputs that are as long along some axes as a run gives them.

ids=1,1..512  ->  room for 512, and one more input, which says how much of it counts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ..system.json_types import Count, Name
from .batches import Asked, span_of

LENGTH = "length"
Place = tuple[Name, Annotated[int, Meta(ge=0)]]  # an input by its name, and one of its axes


@dataclass(frozen=True)
class Range:
    """The lengths that a library takes, from the least to the most.

    length: the input of its function that says how much of the others counts, along the axes of
    `places`.
    """

    least: Count
    most: Count
    length: Name
    places: tuple[Place, ...]

    @classmethod
    def of(cls, shapes: Asked) -> Range | None:
        """Of shapes with a range beyond their first axes; None of others."""
        span = span_of(shapes)
        if span is None or all(span not in shape[1:] for shape in shapes.values()):
            return None
        length = LENGTH
        while length in shapes:
            length += "_"
        axes = ((name, axis, size) for name, one in shapes.items() for axis, size in enumerate(one))
        places = tuple((name, axis) for name, axis, size in axes if size == span)
        return cls(span.least, span.most, length, places)
