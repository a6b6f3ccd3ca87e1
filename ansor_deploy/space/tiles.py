"""Tiles: the ways to split a loop into several, as options that are numbered but never listed.

An extent of some thousands has tens of thousands of factorisations. The factors of a number, and
the number of given factors, are computed on demand.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Tiles:
    """All ways to write an extent as an ordered product of `parts` factors, outermost first.

    limit: the largest last factor, if `parts` is more than one.
    """

    extent: int
    parts: int
    limit: int

    def __len__(self) -> int:
        return _starts(self.extent, self.parts, self.limit)[1]

    def __getitem__(self, at: int) -> tuple[int, ...]:
        if not 0 <= at < len(self):
            raise IndexError(f"there are {len(self)} ways to split {self.extent}, and no {at}")
        return _factors(self.extent, self.parts, self.limit, at)

    def index(self, factors: Sequence[int]) -> int:
        """The number of these factors; ValueError where they do not give such a split."""
        at, extent, limit = 0, self.extent, self.limit
        for parts, last in zip(range(self.parts, 0, -1), reversed(factors), strict=True):
            starts, _ = _starts(extent, parts, limit)
            if last not in starts:
                raise ValueError(f"{factors} is no way to split {self.extent}")
            at += starts[last]
            extent = limit = extent // last
        return at

    def near(self, at: int) -> tuple[int, ...]:
        """The numbers of the splits in which one prime factor has moved to another part."""
        return _moves(self, at)


@lru_cache(maxsize=4096)
def divisors(extent: int) -> tuple[int, ...]:
    """All divisors, ascending. The time grows with the square root of the extent."""
    small = [d for d in range(1, math.isqrt(extent) + 1) if extent % d == 0]
    return (*small, *(extent // d for d in reversed(small) if d * d != extent))


@lru_cache(maxsize=1 << 14)
def _starts(extent: int, parts: int, limit: int) -> tuple[dict[int, int], int]:
    """For each last factor the number of the first split with it; and how many splits there are.

    Splits are numbered by their last factor, then by the one before it, and so on.
    """
    if parts == 1:
        return {extent: 0}, 1
    starts, total = {}, 0
    for last in divisors(extent):
        if last <= limit:
            starts[last] = total
            total += _starts(extent // last, parts - 1, extent)[1]
    return starts, total


@lru_cache(maxsize=1 << 16)
def _factors(extent: int, parts: int, limit: int, at: int) -> tuple[int, ...]:
    starts, _ = _starts(extent, parts, limit)
    last = next(last for last in reversed(starts) if starts[last] <= at)
    left = extent // last
    return (*(_factors(left, parts - 1, left, at - starts[last]) if parts > 1 else ()), last)


@lru_cache(maxsize=1 << 14)
def _moves(tiles: Tiles, at: int) -> tuple[int, ...]:
    factors, found = tiles[at], []
    for source, factor in enumerate(factors):
        for prime in (d for d in divisors(factor) if len(divisors(d)) == 2):
            for to in range(tiles.parts):
                moved = list(factors)
                moved[source] //= prime
                moved[to] *= prime
                if to != source and (to < tiles.parts - 1 or moved[to] <= tiles.limit):
                    found.append(tiles.index(moved))
    return tuple(found)
