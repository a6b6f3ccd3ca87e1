"""Numbers that floats hold: of a size, a half, or a half less one, until it is rounded.

    ceil((n - 3 + 2) / 2 + 1)        n / 2 + 1 / 2, and then a whole number again

What a run computes in float32 is the same: sizes are small, and so are what they are divided by.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from .numbers import Number, Sum, least, most, symbol

_FINEST = 64  # parts of a whole
_LARGEST = 1 << 16  # of a number that is divided: float32 tells all parts of it apart


def plain(number: float | Fraction) -> int:
    """An int where it is whole, else a fraction, which stands for one in what floats hold."""
    made = Fraction(number)
    return made.numerator if made.denominator == 1 else made  # type: ignore[return-value]


def is_fine(number: float) -> bool:
    """Whether a constant of floats is one of these numbers."""
    return abs(number) < _LARGEST and (number * _FINEST).is_integer()


def is_whole(number: Number) -> bool:
    """Whether it is so in every run."""
    return all(Fraction(one).denominator == 1 for one in _parts(number))


def raised(number: Number) -> Number | None:
    """A number rounded up; None where what is to be rounded hangs on a run."""
    if not isinstance(number, Sum):
        return ceil(number)
    if any(Fraction(by).denominator > 1 for _, by in number.factors):
        return None
    return Sum(ceil(number.constant), tuple((term, int(by)) for term, by in number.factors))


def _parts(number: Number) -> list[int]:
    """The constant and the factors."""
    if not isinstance(number, Sum):
        return [number]
    return [number.constant, *(by for _, by in number.factors)]


def share(one: Number, other: Number) -> Number | None:
    """A number over another; None where that is no sum of symbols, or of too fine parts."""
    if isinstance(other, Sum) or not other or most(one) > _LARGEST or least(one) < -_LARGEST:
        return None
    by = Fraction(1, 1) / Fraction(other)
    made = one * by if isinstance(one, Sum) else plain(one * by)  # type: ignore[operator]
    return made if all(_FINEST % Fraction(n).denominator == 0 for n in _parts(made)) else None


def rounded(how: str, number: Number, tensor: str, at: int) -> Number:
    """A number as Ceil, Floor or Cast makes it whole. tensor, at: where a run holds that."""
    least_, most_ = (_rounded(how, end) for end in (least(number), most(number)))
    if not isinstance(number, Sum):
        return least_
    apart = all(Fraction(by).denominator == 1 for _, by in number.factors)
    if apart and (how != "Cast" or least(number) >= 0 or is_whole(number)):
        factors = tuple((term, int(by)) for term, by in number.factors)
        return Sum(_rounded("Floor" if how == "Cast" else how, number.constant), factors)
    return symbol(tensor, at, (least_, most_), number.cause)


def _rounded(how: str, number: float) -> int:
    return {"Ceil": ceil, "Floor": floor}.get(how, int)(number)
