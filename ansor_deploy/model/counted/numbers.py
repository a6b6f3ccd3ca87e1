"""Integers that a run decides, as far as they are known: sums of what some nodes count.

Sizes are computed from sizes: `300 - n` rows appended to `n` rows are 300. So a number is a sum of
*symbols*, or of products of symbols, each with a factor, and terms that cancel out are dropped. A
plain int is a number as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod


@dataclass(frozen=True)
class Symbol:
    """An element of a tensor, by its flat index, and its bounds.

    cause: the node that decides it, or "the ..." for one that the caller does.
    """

    tensor: str
    at: int
    least: int
    most: int
    cause: str

    @property
    def parts(self) -> tuple[Symbol, ...]:
        """The symbols that are multiplied."""
        return (self,)


@dataclass(frozen=True)
class Product:
    """Two or more symbols, multiplied: the number of elements of several axes together."""

    parts: tuple[Symbol, ...]  # sorted

    @property
    def least(self) -> int:
        """A lower bound."""
        return min(self._ends)

    @property
    def most(self) -> int:
        """An upper bound."""
        return max(self._ends)

    @property
    def cause(self) -> str:
        """The node that decides the first symbol."""
        return self.parts[0].cause

    @property
    def _ends(self) -> list[int]:
        return [prod(corner) for corner in product(*((s.least, s.most) for s in self.parts))]


Term = Symbol | Product


@dataclass(frozen=True)
class Sum:
    """A constant plus one or more terms, each with a factor that is not zero.

    For tensors of floats, the constant and factors may be fractions (`shares.py`).
    """

    constant: int
    factors: tuple[tuple[Term, int], ...]

    def __add__(self, other: Number) -> Number:
        """The sum."""
        more = other if isinstance(other, Sum) else Sum(other, ())
        return _sum(self.constant + more.constant, [*self.factors, *more.factors])

    def __mul__(self, other: Number) -> Number:
        """The product."""
        if not isinstance(other, Sum):
            return _sum(self.constant * other, [(s, by * other) for s, by in self.factors])
        pairs = product(self.factors, other.factors)
        terms = [(_term((*one.parts, *two.parts)), n * m) for (one, n), (two, m) in pairs]
        terms += [(one, n * other.constant) for one, n in self.factors]
        terms += [(two, m * self.constant) for two, m in other.factors]
        return _sum(self.constant * other.constant, terms)

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


def _sum(constant: int, factors: Iterable[tuple[Term, int]]) -> Number:
    sums: dict[Term, int] = {}
    for term, by in factors:
        sums[term] = sums.get(term, 0) + by
    left = ((term, by) for term, by in sums.items() if by)
    ordered = tuple(sorted(left, key=lambda one: [*map(_place, one[0].parts)]))
    return Sum(constant, ordered) if ordered else constant


def _term(parts: Iterable[Symbol]) -> Term:
    ordered = tuple(sorted(parts, key=_place))
    return ordered[0] if len(ordered) == 1 else Product(ordered)


def _place(one: Symbol) -> tuple[str, int]:
    return one.tensor, one.at


def multiplied(numbers: Iterable[Number]) -> Number:
    """The product of numbers; 1 if there are none."""
    made: Number = 1
    for one in numbers:
        made = one * made
    return made


def symbol(tensor: str, at: int, bounds: tuple[int, int], cause: str) -> Number:
    """The element of a tensor as a number; an int if both bounds are equal."""
    least, most = bounds
    return least if least == most else Sum(0, ((Symbol(tensor, at, least, most, cause), 1),))


def least(number: Number) -> int:
    """A lower bound of a number."""
    return -most(number * -1)


def most(number: Number) -> int:
    """An upper bound of a number."""
    if not isinstance(number, Sum):
        return int(number)
    ends = (by * (one.most if by > 0 else one.least) for one, by in number.factors)
    return number.constant + sum(ends)


def valued(number: Number, symbol: Symbol, value: int) -> int | None:
    """A number in a run in which a symbol has a value; None if it depends on others."""
    if not isinstance(number, Sum):
        return number
    if any(part != symbol for term, _ in number.factors for part in term.parts):
        return None
    return number.constant + sum(by * value ** len(term.parts) for term, by in number.factors)


def is_less(one: Number, other: Number) -> bool | None:
    """Whether one is less than the other; None if that is open."""
    apart = other - one
    if least(apart) > 0:
        return True
    return False if most(apart) <= 0 else None


def smaller(one: Number, other: Number) -> Number | None:
    """The smaller of two; None if that is open."""
    apart = other - one
    if least(apart) >= 0:
        return one
    return other if most(apart) <= 0 else None


def larger(one: Number, other: Number) -> Number | None:
    """The larger of two; None if that is open."""
    found = smaller(one * -1, other * -1)
    return None if found is None else found * -1


def quotient(number: Number, by: Number) -> Number | None:
    """A number divided by another exactly; None if the quotient is no such sum."""
    constant = number.constant if isinstance(number, Sum) else number
    if not isinstance(by, Sum):
        return None if constant % by else floored(number, by)
    if not isinstance(number, Sum):
        return None
    divisor, factor = max(by.factors, key=_order)
    found: Number = 0
    while isinstance(number, Sum):
        term, times = max(number.factors, key=_order)
        left = _divided(term, divisor)
        if left is None or times % factor:
            return None
        part = multiplied(left) * (times // factor)
        found, number = part + found, number - by * part
    return None if number else found


def root(number: Number) -> Number | None:
    """The square root of the square of one term; None of other numbers."""
    if not isinstance(number, Sum):
        whole = isqrt(max(0, number))
        return whole if whole * whole == number else None
    if number.constant or len(number.factors) != 1:
        return None
    ((term, by),) = number.factors
    factor, counts = root(by), Counter(term.parts)
    if factor is None or any(n % 2 or one.least < 0 for one, n in counts.items()):
        return None
    halves = (Sum(0, ((one, 1),)) for one, n in counts.items() for _ in range(n // 2))
    return multiplied(halves) * factor


def _order(factor: tuple[Term, int]) -> tuple[int, list[tuple[str, int]]]:
    """A sort key of terms; their order stays the same when all are multiplied by one term."""
    parts = factor[0].parts
    return len(parts), [*map(_place, parts)]


def _divided(term: Term, by: Term) -> list[Number] | None:
    """The symbols of a term without those of another; None if it lacks one of them."""
    left = Counter(term.parts)
    left.subtract(by.parts)
    if min(left.values()) < 0:
        return None
    return [Sum(0, ((symbol, 1),)) for symbol in left.elements()]


def floored(number: Number, by: int) -> Number | None:
    """A number divided by a positive int and rounded down; None if that is no such sum."""
    if not isinstance(number, Sum):
        return number // by
    if any(factor % by for _, factor in number.factors):
        return None
    return Sum(number.constant // by, tuple((s, factor // by) for s, factor in number.factors))
