"""Find values behind the part of a tensor that counts that change no sum, maximum or minimum.

    s = where(k < n, x, -inf) ; m = max(s) ; e = exp(s - m) ; t = sum(e)       from n on: -inf, 0

Where no element of a row counts, results may be NaN; a network of exactly that size would give NaN
there as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ..._tvm import collect, structural_equal, tirx, tvm
from ..blocks import Leaf
from .asked import Known, indices_asked, is_choice, operator, parts
from .bound import Bound

_NEUTRAL = {tirx.Add: 0.0, tirx.Max: -math.inf, tirx.Min: math.inf}


def ends(value: Any, known: Known) -> bool:
    """Whether a value may be another from a bound on."""
    return next(_pairs(value, known), None) is not None


def note_behind(stores: Sequence[Any], known: Known) -> None:
    """Note the value behind a bound in the buffer that these, and no others, store to.

    Several are a sum's: what begins it, and what adds to it. Their indices are plain.
    """
    if all(map(_adds, stores)):
        return  # to what the buffer held before
    for axis, index in enumerate(stores[-1].indices):
        for bound in _bounds(stores[-1].value, index, known):
            values = {_stored(one, axis, bound, known) for one in stores}
            if len(values) == 1 and (value := values.pop()) is not None:
                known.behind.setdefault(stores[0].buffer, {})[axis] = bound, value


def _stored(store: Any, axis: int, bound: Bound, known: Known) -> float | None:
    """The constant that a block stores behind a bound along an axis; None where unknown."""
    value, index = store.value, store.indices[axis]
    if not _adds(store):
        return _value(value, index, bound, known)
    return 0.0 if _value(value.b, index, bound, known) == 0.0 else None


def _adds(store: Any) -> bool:
    """Whether a block adds to the element that it stores to."""
    own = tirx.BufferLoad(store.buffer, store.indices)
    return isinstance(store.value, tirx.Add) and structural_equal(store.value.a, own)


def summed_up(leaf: Leaf, known: Known) -> Iterator[tuple[Any, Bound]]:
    """The places of a block whose elements behind a bound are neutral, and the bounds.

    That is 0 in a sum, -inf in a maximum, and inf in a minimum. A place is a reduction axis, or one
    that is split, as in sums of which each core has a part.
    """
    store = leaf.block.body
    neutral = next((_NEUTRAL[k] for k in _NEUTRAL if isinstance(store.value, k)), None)
    own = tirx.BufferLoad(store.buffer, store.indices)
    # A block that initialises its result in the first step must not skip that step.
    begins = leaf.block.init is not None
    if neutral is None or begins or not structural_equal(store.value.a, own):
        return
    pairs = list(_pairs(store.value.b, known))
    for axis in leaf.block.iter_vars:
        if any(structural_equal(axis.var, index) for index in store.indices):
            continue
        for index, bound in pairs:
            if _counts(index, axis) and _value(store.value.b, index, bound, known) == neutral:
                yield index, bound
                break


def _counts(index: Any, axis: Any) -> bool:
    """Whether an index is an axis, or `part * extent + axis`."""
    if not isinstance(index, tirx.Add):
        return bool(axis.var.same_as(index))
    part, rest = index.a, index.b
    size = part.b if isinstance(part, tirx.Mul) else None
    return bool(rest.same_as(axis.var)) and structural_equal(size, axis.dom.extent)


def _bounds(value: Any, index: Any, known: Known) -> list[Bound]:
    """Bounds that may matter for an index."""
    pairs = _pairs(value, known)
    return list(dict.fromkeys(bound for one, bound in pairs if structural_equal(one, index)))


def _pairs(value: Any, known: Known) -> Iterator[tuple[Any, Bound]]:
    """Indices with bounds that may matter: of tensors that are read there, and of conditions."""
    for load in collect(value, tvm.ir.TensorLoad):
        for at, (bound, _) in known.behind.get(load.source, {}).items():
            yield from _and_rows(load.indices[at], bound)
    for choice in (*collect(value, tirx.Select), *collect(value, tvm.ir.Call)):
        if is_choice(choice):
            for index, bound in indices_asked(parts(choice)[0], known):
                yield from _and_rows(index, bound)


def _and_rows(index: Any, bound: Bound) -> Iterator[tuple[Any, Bound]]:
    """An index with its bound, and the row with its own in an index `row * size + ..`."""
    yield index, bound
    row = index.a if isinstance(index, tirx.Add) else None
    if isinstance(row, tirx.Mul) and isinstance(row.b, tirx.IntImm):
        yield row.a, bound.divided(int(row.b))


def _value(value: Any, index: Any, bound: Bound, known: Known) -> float | None:
    """The constant that a value is where an index is not below a bound; None where unknown."""

    def of(one: Any) -> float | None:
        return _value(one, index, bound, known)

    if isinstance(value, (tirx.FloatImm, tirx.IntImm)):
        return float(value.value)
    if isinstance(value, tvm.ir.TensorLoad):
        return _loaded(value, index, bound, known)
    if is_choice(value):
        condition, _, no = parts(value)
        pairs = indices_asked(condition, known)
        asks = any(_is_one(*pair, index, bound) for pair in pairs)
        return of(no) if asks or _asks_nan(condition) else None
    return _combined(value, of)


def _combined(value: Any, of: Any) -> float | None:
    if isinstance(value, tirx.Cast):
        return of(value.value)
    if operator(value) == "exp":
        return 0.0 if of(value.args[0]) == -math.inf else None
    if isinstance(value, tirx.Mul):
        return 0.0 if 0.0 in (of(value.a), of(value.b)) else None
    if isinstance(value, tirx.Div):
        return 0.0 if of(value.a) == 0.0 else None
    if isinstance(value, (tirx.Add, tirx.Sub)):
        return -math.inf if of(value.a) == -math.inf else None
    return None


def _loaded(load: Any, index: Any, bound: Bound, known: Known) -> float | None:
    if load.source in known.values:
        return known.values[load.source]
    for axis, (own, value) in known.behind.get(load.source, {}).items():
        if _is_one(load.indices[axis], own, index, bound):
            return value
    return None


def _is_one(one: Any, own: Bound, index: Any, bound: Bound) -> bool:
    """Whether an index at or behind a bound means that `one` is at or behind its own."""
    pairs = _and_rows(one, own)
    return any(other == bound and structural_equal(part, index) for part, other in pairs)


def _asks_nan(condition: Any) -> bool:
    return any(operator(one) == "isnan" for one in collect(condition, tvm.ir.Call))
