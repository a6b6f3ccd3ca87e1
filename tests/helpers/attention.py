"""Attention in TE: the product of queries and keys, a softmax, and the product with values."""

from __future__ import annotations

from typing import Any

from tvm import te, topi


def attention(rows: int, keys: int, *, masked: bool = False) -> list[Any]:
    """Operands and result, with two heads; masked: add a mask, and make empty rows zeros."""
    shapes = [(2, rows, 8), (2, 8, keys), (2, keys, 16), (rows, keys)]
    q, k, v, m = (te.placeholder(shape, name="x") for shape in shapes)
    scores = _product(q, k, "scores")
    if not masked:
        return [q, k, v, _product(topi.nn.softmax(scores, -1), v, "weighted")]
    weights = topi.nn.softmax(topi.add(topi.divide(scores, 3.0), m), -1)
    safe = topi.where(topi.isnan(weights), topi.full_like(weights, 0.0), weights)
    return [q, k, v, m, _product(safe, v, "weighted")]


def _product(a: Any, b: Any, name: str) -> Any:
    depth = te.reduce_axis((0, b.shape[1]), "d")
    shape = (*a.shape[:2], b.shape[2])
    return te.compute(shape, lambda h, i, j: te.sum(a[h, i, depth] * b[h, depth, j], depth), name)
