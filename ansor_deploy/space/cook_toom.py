"""Matrices of short convolutions with few multiplications (Toom, 1963; Cook, 1966; Winograd, 1980).

Along an axis with a window of R taps, A = M + R - 1 elements give a tile of M results by A
multiplications instead of M R. A - 1 points and infinity determine the matrices exactly.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

# Small numbers and their negatives: their powers are cheap, and lose least in float32.
POINTS = (0, 1, -1, 2, -2, Fraction(1, 2), Fraction(-1, 2))

Matrix = tuple[tuple[Fraction, ...], ...]


@cache
def matrices(size: int, window: int) -> tuple[Matrix, Matrix, Matrix]:
    """AT (M x A), G (A x R) and BT (A x A) of F(M, R): AT ((G w) * (BT d)) is d correlated with w.

    size: M, the results of a tile. window: R, the taps of the window.
    """
    if window == 1:
        one = ((Fraction(1),),)
        return one, one, one
    points = [Fraction(point) for point in POINTS[: size + window - 2]]
    others = [[q for q in points if q != p] for p in points]
    pairs = list(zip(points, others, strict=True))
    scales = [math.prod((p - q for q in rest), start=Fraction(1)) for p, rest in pairs]
    results = [[p**at for p in points] + [Fraction(at == size - 1)] for at in range(size)]
    weights = [[p**at / s for at in range(window)] for p, s in zip(points, scales, strict=True)]
    weights.append([Fraction(at == window - 1) for at in range(window)])
    data = [[*_polynomial(rest), Fraction(0)] for rest in others] + [_polynomial(points)]
    at, g, bt = (tuple(map(tuple, rows)) for rows in (results, weights, data))
    return at, g, bt


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """Coefficients of the product of (x - root) over all roots, the constant first."""
    found = [Fraction(1)]
    for root in roots:
        pairs = zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)
        found = [a - root * b for a, b in pairs]
    return found
