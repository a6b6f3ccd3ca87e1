"""How much of a tensor is needed along an axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ..._tvm import tirx

_MOST = 3  # terms; with more, all is needed


@dataclass(frozen=True)
class Bound:
    """The largest of some terms, each a factor times a number, and a constant.

    terms: the variable of Relax that holds the number, the factor, which is above zero, and the
    constant.
    """

    terms: frozenset[tuple[Any, int, int]]

    @classmethod
    def of(cls, number: Any) -> Bound:
        """Of a number alone."""
        return cls(frozenset([(number, 1, 0)]))

    def or_more(self, other: Bound) -> Bound:
        """The larger of two; of terms that differ in their constants, the largest is left."""
        most: dict[tuple[Any, int], int] = {}
        for number, factor, constant in self.terms | other.terms:
            key = number, factor
            most[key] = max(constant, most.get(key, constant))
        return Bound(frozenset((*key, constant) for key, constant in most.items()))

    def scaled(self, factor: int, more: int) -> Bound:
        """So many times as much, and a constant more."""
        return Bound(frozenset((n, f * factor, c * factor + more) for n, f, c in self.terms))

    def expression(self, numbers: Mapping[Any, Any]) -> Any:
        """It as an expression. numbers: of each variable, its place among them, and its own."""
        ordered = sorted(self.terms, key=lambda term: (numbers[term[0]][0], *term[1:]))
        return reduce(tirx.Max, (numbers[n][1] * f + c for n, f, c in ordered))


Needed = Mapping[int, Bound]  # by axis; all of it along the others


def joined(one: Needed | None, other: Needed) -> Needed:
    """What two readers need. one: None where there was none before."""
    if one is None:
        return other
    shared = ((axis, one[axis].or_more(other[axis])) for axis in one if axis in other)
    return {axis: bound for axis, bound in shared if len(bound.terms) <= _MOST}
