"""Numbers in tensors of floats: parts of a size, such as n / 2 - 1, until they are rounded.

    ceil((n - 3 + 2) / 2 + 1)        n / 2 + 1 / 2, and then an integer again

A run that computes in float32 gets the same results, since sizes and their divisors are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, lcm

from .numbers import Number, Sum, least, most, symbol

_FINEST = 64  # denominators are divisors of this
_LARGEST = 1 << 16  # the bound of a part that is divided: float32 distinguishes all its parts
_LARGEST_SIZE = 1 << 22  # the bound of an integer that is divided
_HELD = 1 << 23  # float32 holds the integers below this, and the halves between them


def plain(number: float | Fraction) -> int:
    """An int if the number is an integer, else a fraction, which is typed as an int here."""
    made = Fraction(number)
    return made.numerator if made.denominator == 1 else made  # type: ignore[return-value]


def is_fine(number: float) -> bool:
    """Whether a float constant is one of these numbers."""
    return abs(number) < _LARGEST and (number * _FINEST).is_integer()


def is_whole(number: Number) -> bool:
    """Whether the number is an integer in every run."""
    return all(Fraction(one).denominator == 1 for one in parts(number))


def is_held(number: Number) -> bool:
    """Whether float32 distinguishes all values that the number may have."""
    finest = lcm(*(Fraction(one).denominator for one in parts(number)))
    return finest * max(most(number), -least(number)) < _HELD


def raised(number: Number) -> Number | None:
    """A number rounded up; None if the part to be rounded depends on a run."""
    if not isinstance(number, Sum):
        return ceil(number)
    if any(Fraction(by).denominator > 1 for _, by in number.factors):
        return None
    return Sum(ceil(number.constant), tuple((term, int(by)) for term, by in number.factors))


def parts(number: Number) -> list[int]:
    """The constant and the factors of a number."""
    if not isinstance(number, Sum):
        return [number]
    return [number.constant, *(by for _, by in number.factors)]


def is_exact(number: Number) -> bool:
    """Whether float32 holds all values of the number exactly, as it holds no thirds."""
    return all(_FINEST % Fraction(one).denominator == 0 for one in parts(number))


def share(one: Number, other: Number) -> Number | None:
    """A number divided by another; None if the result is no sum of symbols, or too fine.

    A third of an integer is one too: what float32 lacks to it is less than to any integer.
    """
    largest = _LARGEST_SIZE if is_whole(one) else _LARGEST
    if isinstance(other, Sum) or not other or max(most(one), -least(one)) > largest:
        return None
    by = Fraction(1, 1) / Fraction(other)
    made = one * by if isinstance(one, Sum) else plain(one * by)  # type: ignore[operator]
    is_part = is_whole(one) and is_whole(other) and abs(other) <= _FINEST
    return made if is_part or is_exact(made) else None


def keeps(operator: str, given: Sequence[Number]) -> bool:
    """Whether a run's result is as near to the exact one as its operands are.

    A third may get an integer added; a third of 3 times 3 would not be 3 for sure.
    """
    rough = [one for one in given if not is_exact(one)]
    whole = sum(map(is_whole, given)) == len(given) - 1
    return not rough or (operator in ("Add", "Sub") and len(rough) == 1 and whole)


def rounded(how: str, number: Number, tensor: str, at: int) -> Number:
    """A number rounded by Ceil, Floor or Cast. tensor, at: the element that holds it in a run."""
    least_, most_ = (_rounded(how, end) for end in (least(number), most(number)))
    if not isinstance(number, Sum):
        return least_
    apart = is_held(number) and all(Fraction(by).denominator == 1 for _, by in number.factors)
    if apart and (how != "Cast" or least(number) >= 0 or is_whole(number)):
        factors = tuple((term, int(by)) for term, by in number.factors)
        return Sum(_rounded("Floor" if how == "Cast" else how, number.constant), factors)
    return symbol(tensor, at, (least_, most_), number.cause)


def _rounded(how: str, number: float) -> int:
    return {"Ceil": ceil, "Floor": floor}.get(how, int)(number)
