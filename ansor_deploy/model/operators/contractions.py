"""Einsum of two tensors as a product of matrices between transposes.

    y = Einsum(a, b), "bihd,bjhd->bhij"
    -->
    y = MatMul(a as [b, h, i, d], b as [b, h, d, j])

In this form attention is recognised, and the rules for matrix products apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_letters

from ..graph.graph import FLOATS
from .emitter import Emitter
from .operator import Operator


def labels(equation: str, ranks: Sequence[int]) -> tuple[list[str], str] | None:
    """A letter for each axis of the inputs and of the result; None if the equation does not fit.

    Axes that are written as dots get letters of their own; they are aligned at their last axis.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        return None
    free = [letter for letter in ascii_letters if letter not in equation]
    hidden = [n - len(t.replace("...", "")) for t, n in zip(terms, ranks, strict=True)]
    if any(n < 0 or (n and "..." not in t) for t, n in zip(terms, hidden, strict=True)):
        return None
    dots = "".join(free[: max(hidden)])
    terms = [t.replace("...", dots[len(dots) - n :]) for t, n in zip(terms, hidden, strict=True)]
    every = "".join(terms)
    alone = sorted(n for n in set(every) if every.count(n) == 1 and n not in dots)
    return terms, right.replace("...", dots) if arrow else dots + "".join(alone)


def product(emit: Emitter) -> str | None:
    """Two tensors of floats with a sum over a shared axis; None for others, which stay."""
    names = list(emit.node.input)
    if len(names) != 2 or emit.dtype(names[0]) not in FLOATS:
        return None
    found = labels(emit.attribute("equation"), [len(emit.shape(name)) for name in names])
    if found is None or not _is_product(emit, names, *found):
        return None
    (a, b), made = found
    batch = [n for n in a if n in b and n in made]
    summed = [n for n in a if n in b and n not in made]
    rows, columns = ([n for n in term if n not in other] for term, other in ((a, b), (b, a)))
    sizes = dict(zip(a + b, (*emit.shape(names[0]), *emit.shape(names[1])), strict=True))
    left = _matrix(emit, names[0], a, (batch, rows, summed), sizes)
    right = _matrix(emit, names[1], b, (batch, summed, columns), sizes)
    whole = [*batch, *rows, *columns]
    result = emit.reshape(emit("MatMul", left, right), *(sizes[n] for n in whole))
    return emit("Transpose", result, perm=[whole.index(n) for n in made])


def _is_product(emit: Emitter, names: Sequence[str], terms: Sequence[str], made: str) -> bool:
    """Whether no term repeats a letter, unshared letters are kept, and shared ones are summed."""
    a, b = map(set, terms)
    sizes = [dict(zip(t, emit.shape(n), strict=True)) for t, n in zip(terms, names, strict=True)]
    once = all(len(set(term)) == len(term) for term in (*terms, made))
    kept = (a ^ b) <= set(made) <= (a | b)
    return once and kept and bool((a & b) - set(made)) and all(
        sizes[0][n] == sizes[1][n] for n in a & b
    )  # fmt: skip


def _matrix(
    emit: Emitter, name: str, term: str, groups: Sequence[Sequence[str]], sizes: dict[str, int]
) -> str:
    """A tensor as matrices: its axes in the order of the groups; each but the first is one axis."""
    order = [term.index(n) for group in groups for n in group]
    turned = emit("Transpose", name, perm=order)
    batch, *inner = groups
    if all(len(group) == 1 for group in inner):
        return turned
    shape = [sizes[n] for n in batch]
    return emit.reshape(turned, *shape, *(prod(sizes[n] for n in group) for group in inner))


OPERATORS = (Operator("Einsum", since=12, expand=product),)
