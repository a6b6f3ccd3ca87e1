"""Ranges of lengths: inputs that have along some axes the length that a run gives them.

ids=1,1..512                   ->  room for 512, and one more input, which says how much counts
images=1,3,32..640,32..640     ->  two more, if height and width have names of their own
slow=1,1..64 fast=1,4..256     ->  one more, if the graph reads four of `fast` with one of `slow`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    times: how many times the length each of these axes is; empty where all are the length itself.
    The first axis always is.
    """

    least: Count
    most: Count
    length: Name
    places: tuple[Place, ...]
    step: Count = 1
    times: tuple[Count, ...] = ()

    def extents(self) -> Iterator[tuple[Place, int]]:
        """The places, each with how many times the length its axis is."""
        return zip(self.places, self.times or (1,) * len(self.places), strict=True)


def at_sizes(
    shapes: Asked, ranges: Sequence[Range], sizes: Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """The shapes where each range is replaced by one size."""
    pairs = zip(ranges, sizes, strict=True)
    at = {place: n * times for one, n in pairs for place, times in one.extents()}
    return fixed(shapes, at)


def fixed(shapes: Asked, sizes: Mapping[Place, int]) -> dict[str, tuple[int, ...]]:
    """The shapes where each axis with a range gets one size."""
    return {
        name: tuple(sizes[name, axis] if isinstance(n, Span) else n for axis, n in enumerate(shape))
        for name, shape in shapes.items()
    }
