"""Numbers that were divided and rounded down: equal ones are recognised, however computed.

    ((n - 3) // 2 + 1 - 3) // 2   is   (n - 7) // 4

Convolutions divide one after the other, while an exporter writes the result of all divisions.
"""

from __future__ import annotations

from .numbers import Number, Sum, Symbol, Term, least


class Quotients:
    """The results of divisions, by what was divided in its simplest form."""

    def __init__(self) -> None:
        self._made: dict[tuple[Number, int], Number] = {}
        self._of: dict[Term, tuple[Number, int]] = {}  # for a symbol: (number, by) that it divides

    def find(self, number: Number, by: int) -> Number | None:
        """The quotient of a number, rounded down, if it is known."""
        whole, rest, by = self._simplest(number, by)
        known = self._made.get((rest, by)) if isinstance(rest, Sum) else rest // by
        return None if known is None else known + whole

    def note(self, number: Number, by: int, made: Number) -> Number:
        """Note `made` as the quotient of a number; returns the known quotient if there is one."""
        if (known := self.find(number, by)) is not None:
            return known
        whole, rest, over = self._simplest(number, by)
        self._made[rest, over] = made - whole
        if isinstance(made, Sum) and len(made.factors) == 1 and made.factors[0][1] == 1:
            self._of.setdefault(made.factors[0][0], (number - made.constant * by, by))
        return made

    def least(self, number: Number) -> int:
        """A lower bound of a number, from what is divided where that gives more than quotients do.

        `4 * (n // 4 + 1) - n` is above zero, whatever the bounds of n.
        """
        exact = number
        for term, factor in number.factors if isinstance(number, Sum) else ():
            divided, by = self._of.get(term, (0, 0))
            if by and factor % by == 0:  # by * quotient: from divided - (by - 1) to divided
                times = factor // by
                lost = max(0, times) * (by - 1)
                exact = exact - Sum(0, ((term, factor),)) + (divided * times - lost)
        return max(least(number), least(exact))

    def _simplest(self, number: Number, by: int) -> tuple[Number, Number, int]:
        """(the integer part of a division, the number that is left to be divided, the divisor)."""
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
    """(the quotient of the multiples of `by` in a number, what is left of the number)."""
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
