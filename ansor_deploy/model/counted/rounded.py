"""Sizes that a file computes as floats and rounds, computed as integers.

    m = Ceil((n - 4) / 2 + 1)        -->        m = (n - 1) / 2, an integer division

So sizes that follow are known in terms of the first one, and quotients that a convolution computes
of the same size are equal to them.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from ..graph.graph import FLOATS
from .known import Axes, Step
from .numbers import Sum, least
from .shares import is_held, parts
from .values import objects


def rounded(step: Step) -> list[tuple[str, Axes]] | None:
    """The integer to which a part of a size is rounded."""
    values, how = step.values(0), step.node.op_type
    number = values.item() if values is not None and values.size == 1 else None
    if values is None or not isinstance(number, Sum) or not is_held(number) or least(number) < 0:
        return None
    kind = step.attribute("to", 0) or step.dtype(step.input(0))
    factors = [Fraction(by) for _, by in number.factors]
    if all(one.denominator == 1 for one in factors) or (how == "Cast" and kind in FLOATS):
        return None
    by = lcm(*(Fraction(one).denominator for one in parts(number)))
    whole = Sum(int(number.constant * by), tuple((term, int(n * by)) for term, n in number.factors))
    size = step.divided(whole + (by - 1 if how == "Ceil" else 0), by)
    made = step.reshape(step.cast(step.scalar(size), kind), *values.shape)
    step.facts.hold(made, objects(np.full(values.shape, size, object)))
    return [(made, {})]


RULES = dict.fromkeys(("Cast", "Ceil", "Floor"), rounded)
