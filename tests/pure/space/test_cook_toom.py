"""Matrices of short convolutions, in exact fractions."""

from fractions import Fraction

import pytest

from ansor_deploy.space.cook_toom import matrices

CASES = [(1, 1), (2, 2), (2, 3), (4, 3), (3, 4), (2, 5), (4, 5)]


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


@pytest.mark.parametrize(("size", "window"), CASES)
def test_they_make_a_correlation_of_as_many_products_as_elements(size, window):
    at, g, bt = matrices(size, window)
    data = [Fraction(n * n + 3, 7) for n in range(size + window - 1)]
    weights = [Fraction(5 - 2 * n, 3) for n in range(window)]
    products = [a * b for a, b in zip(times(g, weights), times(bt, data), strict=True)]
    assert len(products) == size + window - 1
    want = [sum(data[y + r] * weights[r] for r in range(window)) for y in range(size)]
    assert times(at, products) == want
