"""Numbers that were divided and rounded down: equal ones are one, however they were computed.

    ((n - 3) // 2 + 1 - 3) // 2   is   (n - 7) // 4

Convolutions divide one after the other, where an exporter writes what that comes to.
"""

from __future__ import annotations

from .numbers import Number, Sum, Symbol, Term


class Quotients:
    """What came of divisions, by what was divided in its simplest form."""

    def __init__(self) -> None:
        self._made: dict[tuple[Number, int], Number] = {}
        self._of: dict[Term, tuple[Number, int]] = {}  # what a symbol is, rounded down

    def find(self, number: Number, by: int) -> Number | None:
        """A number by another, if that is known."""
        whole, rest, by = self._simplest(number, by)
        known = self._made.get((rest, by)) if isinstance(rest, Sum) else rest // by
        return None if known is None else known + whole

    def note(self, number: Number, by: int, made: Number) -> Number:
        """What is known of a number by another, which is this if nothing is."""
        if (known := self.find(number, by)) is not None:
            return known
        whole, rest, over = self._simplest(number, by)
        self._made[rest, over] = made - whole
        if isinstance(made, Sum) and len(made.factors) == 1 and made.factors[0][1] == 1:
            self._of.setdefault(made.factors[0][0], (number - made.constant * by, by))
        return made

    def _simplest(self, number: Number, by: int) -> tuple[Number, Number, int]:
        """What a division comes to beside another: a number, and what is left to be divided."""
        whole: Number = 0
        while isinstance(number, Sum):
            apart, number = _parted(number, by)
            whole = apart + whole
            if not isinstance(number, Sum) or len(number.factors) > 1:
                break
            ((term, factor),) = number.factors
            if factor != 1 or not isinstance(term, Symbol) or term not in self._of:
                break
            inner, before = self._of[term]
            number, by = inner + number.constant * before, by * before
        return whole, number, by


def _parted(number: Sum, by: int) -> tuple[Number, Number]:
    """How often another is in a number without a rest, and what is left."""
    constant, left = divmod(number.constant, by)
    whole: Number = constant
    rest: Number = left
    for term, factor in number.factors:
        one = Sum(0, ((term, factor if factor % by else factor // by),))
        if factor % by:
            rest = one + rest
        else:
            whole = one + whole
    return whole, rest
