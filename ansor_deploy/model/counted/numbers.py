"""Whole numbers that a run decides, as far as they are known: sums of what some nodes count.

Sizes are computed of sizes: `300 - n` rows are laid behind `n`, which makes 300. So a number is a
sum of *symbols*, each with a factor, and what cancels out is gone. A plain int is a number as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Symbol:
    """An element of a tensor, by its place in the flat one, and the bounds that hold for it.

    cause: the node that decides it, or "the ..." of a caller's.
    """

    tensor: str
    at: int
    least: int
    most: int
    cause: str


@dataclass(frozen=True)
class Sum:
    """A constant and symbols, each with a factor that is not zero; at least one."""

    constant: int
    factors: tuple[tuple[Symbol, int], ...]

    def __add__(self, other: Number) -> Number:
        """The sum."""
        more = other if isinstance(other, Sum) else Sum(int(other), ())
        return _sum(self.constant + more.constant, [*self.factors, *more.factors])

    def __mul__(self, other: Number) -> Number:
        """The product with an int; TypeError with what a run decides."""
        if isinstance(other, Sum):
            raise TypeError("no sum of symbols")
        factor = int(other)
        return _sum(self.constant * factor, [(s, by * factor) for s, by in self.factors])

    def __sub__(self, other: Number) -> Number:
        """The difference."""
        return self + other * -1

    def __rsub__(self, other: int) -> Number:
        """The difference."""
        return self * -1 + other

    __radd__, __rmul__ = __add__, __mul__

    @property
    def cause(self) -> str:
        """A node that decides it."""
        return self.factors[0][0].cause


Number = int | Sum


def _sum(constant: int, factors: Iterable[tuple[Symbol, int]]) -> Number:
    sums: dict[Symbol, int] = {}
    for symbol, by in factors:
        sums[symbol] = sums.get(symbol, 0) + by
    left = tuple((symbol, by) for symbol, by in sums.items() if by)
    ordered = tuple(sorted(left, key=lambda one: (one[0].tensor, one[0].at)))
    return Sum(constant, ordered) if ordered else constant


def symbol(tensor: str, at: int, bounds: tuple[int, int], cause: str) -> Number:
    """The element of a tensor as a number; an int where both bounds are one."""
    least, most = bounds
    return least if least == most else Sum(0, ((Symbol(tensor, at, least, most, cause), 1),))


def least(number: Number) -> int:
    """What it is at least."""
    return -most(number * -1)


def most(number: Number) -> int:
    """What it is at most."""
    if not isinstance(number, Sum):
        return int(number)
    ends = (by * (one.most if by > 0 else one.least) for one, by in number.factors)
    return number.constant + sum(ends)


def is_less(one: Number, other: Number) -> bool | None:
    """Whether one is less than another; None where that is open."""
    apart = other - one
    if least(apart) > 0:
        return True
    return False if most(apart) <= 0 else None


def smaller(one: Number, other: Number) -> Number | None:
    """The less of two; None where that is open."""
    apart = other - one
    if least(apart) >= 0:
        return one
    return other if most(apart) <= 0 else None


def larger(one: Number, other: Number) -> Number | None:
    """The larger of two; None where that is open."""
    found = smaller(one * -1, other * -1)
    return None if found is None else found * -1


def quotient(number: Number, by: int) -> Number | None:
    """How often a number that is not zero is in another; None where that is no such sum."""
    constant = number.constant if isinstance(number, Sum) else number
    return None if constant % by else floored(number, by)


def floored(number: Number, by: int) -> Number | None:
    """A number by another that is above zero, rounded down; None where that is no such sum."""
    if not isinstance(number, Sum):
        return number // by
    if any(factor % by for _, factor in number.factors):
        return None
    return Sum(number.constant // by, tuple((s, factor // by) for s, factor in number.factors))
