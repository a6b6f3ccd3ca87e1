"""Sizes of several inputs that have to be multiples of each other, found by what contradicts.

A codec reads one code of its slowest stage for four of its fastest, and a control image has eight
pixels for one of the latent image. Files give such axes different names and say no more. So where a
node joins sizes that differ, one input after the other is scaled by their quotient, until the node
fits, and then the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product

from .misfit import Trials

Shape = tuple[int, ...]
Places = Mapping[str, Collection[int]]  # of each input, the axes that may change together
_MOST_INPUTS = 6


def in_proportion(
    trials: Trials, given: Mapping[str, Shape], first: Mapping[str, Shape], places: Places
) -> Iterator[dict[str, Shape]]:
    """Shapes that fit, made of the first ones by scaling inputs; none if none are found.

    given: the shapes of the other inputs.
    """
    shapes: dict[str, Shape] | None = dict(first)
    seen = set[str]()
    while shapes and 1 < len(places) <= _MOST_INPUTS:
        at, sizes = trials.clash({**given, **shapes})
        if not at:
            if not trials.misfit({**given, **shapes}):
                yield shapes
            return
        seen.add(at)
        tried = _scaled(shapes, places, sizes) if len(sizes) == 2 else ()
        clashes = ((one, trials.clash({**given, **one})[0]) for one in tried)
        shapes = next((one for one, place in clashes if place not in seen), None)


def _scaled(
    shapes: Mapping[str, Shape], places: Places, sizes: list[int]
) -> Iterator[dict[str, Shape]]:
    """The shapes with one input scaled by the quotient of two sizes, smaller ones first."""
    small, large = sorted(sizes)
    for (by, over), name in product(((small, large), (large, small)), places):
        old = shapes[name]
        if all(old[at] * by % over == 0 for at in places[name]):
            scaled = [n * by // over if at in places[name] else n for at, n in enumerate(old)]
            yield {**shapes, name: tuple(scaled)}
