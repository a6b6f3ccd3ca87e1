"""Ranges of lengths: inputs that have along some axes the length that a run gives them.

ids=1,1..512                   ->  room for 512, and one more input, which says how much counts
images=1,3,32..640,32..640     ->  two more, if height and width have names of their own
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ..system.json_types import Count, Name
from .batches import Asked, Span

Place = tuple[Name, Annotated[int, Meta(ge=0)]]  # an axis of an input: its name and the axis


@dataclass(frozen=True)
class Range:
    """The lengths that a library takes, from the least to the most, in steps.

    length: the input of its function that says how many elements count along the axes in `places`.
    """

    least: Count
    most: Count
    length: Name
    places: tuple[Place, ...]
    step: Count = 1


def at_sizes(
    shapes: Asked, ranges: Sequence[Range], sizes: Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """The shapes where each range is replaced by one size."""
    at = {place: n for one, n in zip(ranges, sizes, strict=True) for place in one.places}
    return fixed(shapes, at)


def fixed(shapes: Asked, sizes: Mapping[Place, int]) -> dict[str, tuple[int, ...]]:
    """The shapes where each axis with a range gets one size."""
    return {
        name: tuple(sizes[name, axis] if isinstance(n, Span) else n for axis, n in enumerate(shape))
        for name, shape in shapes.items()
    }
