"""How much of a tensor is needed along an axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

from ..._tvm import tirx

_MOST = 3  # terms of a bound; where there would be more, the whole axis counts as needed


class _Term(NamedTuple):
    """`(number * factor + more) // by * times + constant`. number: a variable of Relax."""

    number: Any
    factor: int
    more: int
    by: int
    times: int
    constant: int

    def scaled(self, factor: int, more: int) -> _Term:
        if self.by == 1:
            return self._replace(
                factor=self.factor * factor, constant=self.constant * factor + more
            )
        return self._replace(times=self.times * factor, constant=self.constant * factor + more)

    def floored(self, by: int) -> _Term:
        """The term divided by a number and rounded down, or a little more than that."""
        if self.by > 1 and self.times == 1:
            more = self.more + self.constant * self.by
            return self._replace(more=more, by=self.by * by, constant=0)
        if self.by > 1 and self.times % by == 0:
            return self._replace(times=self.times // by, constant=self.constant // by)
        if self.by > 1:
            return self.divided(by)
        if self.factor % by == 0:
            return _Term(self.number, self.factor // by, 0, 1, 1, self.constant // by)
        return _Term(self.number, self.factor, self.constant, by, 1, 0)

    def divided(self, by: int) -> _Term:
        """The term divided by a number and rounded up, or a little more than that."""
        if self.by > 1 and self.times % by == 0:
            return self._replace(times=self.times // by, constant=-(-self.constant // by))
        factor, divisor = self.factor * self.times, self.by * by
        more = self.more * self.times + (self.constant + by - 1) * self.by
        if factor % divisor == 0:
            return _Term(self.number, factor // divisor, 0, 1, 1, more // divisor)
        return _Term(self.number, factor, more, divisor, 1, 0)

    def expression(self, number: Any) -> Any:
        if self.by == 1:
            return number * self.factor + self.constant
        quotient = tirx.floordiv(number * self.factor + self.more, self.by)
        return quotient * self.times + self.constant


@dataclass(frozen=True)
class Bound:
    """The largest of some terms, each linear in a number that a run decides."""

    terms: frozenset[_Term]

    @classmethod
    def of(cls, number: Any) -> Bound:
        """The bound that is a number itself. number: the Relax variable that holds it."""
        return cls(frozenset([_Term(number, 1, 0, 1, 1, 0)]))

    @property
    def numbers(self) -> list[Any]:
        """The Relax variables of the numbers in it."""
        return [term.number for term in self.terms]

    def or_more(self, other: Bound) -> Bound:
        """The larger of two bounds; of terms that differ in one constant, the largest is kept."""
        terms = _largest(self.terms | other.terms, "constant")
        return Bound(frozenset(_largest(terms, "more")))

    def scaled(self, factor: int, more: int) -> Bound:
        """The bound times `factor`, plus `more`."""
        return Bound(frozenset(term.scaled(factor, more) for term in self.terms))

    def divided(self, by: int) -> Bound:
        """The bound divided by a number and rounded up, or a little more than that."""
        return Bound(frozenset(term.divided(by) for term in self.terms))

    def floored(self, by: int) -> Bound:
        """The bound divided by a number and rounded down, or a little more than that."""
        return Bound(frozenset(term.floored(by) for term in self.terms))

    def expression(self, numbers: Mapping[Any, Any]) -> Any:
        """The bound as an expression. numbers: each variable's position and expression."""
        ordered = sorted(self.terms, key=lambda term: (numbers[term[0]][0], *term[1:]))
        return reduce(tirx.Max, (term.expression(numbers[term.number][1]) for term in ordered))


def _largest(terms: Iterable[_Term], field: str) -> list[_Term]:
    """For terms that differ in one field only, the one where that field is largest."""
    most: dict[_Term, _Term] = {}
    for term in terms:
        same = term._replace(**{field: 0})
        most[same] = max(term, most.get(same, term), key=lambda one: getattr(one, field))
    return list(most.values())


# The part of a tensor that is needed: (axis, modulus) -> bound. The bound is of `index % modulus`,
# or of the index where the modulus is 0. Axes that are not in it are needed whole.
Needed = Mapping[tuple[int, int], Bound]


def joined(one: Needed | None, other: Needed) -> Needed:
    """The part that two readers need together. one: None where there was no reader before."""
    if one is None:
        return other
    shared = ((axis, one[axis].or_more(other[axis])) for axis in one if axis in other)
    return {axis: bound for axis, bound in shared if len(bound.terms) <= _MOST}
