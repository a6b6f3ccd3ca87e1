"""Find values behind the part of a tensor that counts that change no sum and no maximum.

    s = where(k < n, x, -inf) ; m = max(s) ; e = exp(s - m) ; t = sum(e)       from n on: -inf, 0

Where no element of a row counts, results may be NaN; a network of exactly that size would give NaN
there as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..._tvm import collect, structural_equal, tirx, tvm
from ..blocks import Leaf
from .asked import Known, indices_asked, is_choice, operator, parts
from .bound import Bound

_NEUTRAL = {tirx.Add: 0.0, tirx.Max: -math.inf}


def note_behind(leaf: Leaf, known: Known) -> None:
    """Note the value behind a bound in the buffer that a block, and no other block, stores to."""
    store = leaf.block.body
    for axis, index in enumerate(store.indices):
        for bound in _bounds(store.value, index, known):
            if (value := _value(store.value, index, bound, known)) is not None:
                known.behind.setdefault(store.buffer, {})[axis] = bound, value


def summed_up(leaf: Leaf, known: Known) -> Iterator[tuple[Any, Bound]]:
    """The reduction axes of a block whose elements behind a bound are neutral, and the bounds.

    That is 0 in a sum, and -inf in a maximum.
    """
    store = leaf.block.body
    neutral = next((_NEUTRAL[k] for k in _NEUTRAL if isinstance(store.value, k)), None)
    own = tirx.BufferLoad(store.buffer, store.indices)
    # A block that initialises its result in the first step must not skip that step.
    begins = leaf.block.init is not None
    if neutral is None or begins or not structural_equal(store.value.a, own):
        return
    for axis in leaf.block.iter_vars:
        if any(structural_equal(axis.var, index) for index in store.indices):
            continue
        for bound in _bounds(store.value.b, axis.var, known):
            if _value(store.value.b, axis.var, bound, known) == neutral:
                yield axis.var, bound
                break


def _bounds(value: Any, index: Any, known: Known) -> list[Bound]:
    """Bounds that may matter for an index: of tensors that are read at it, and of conditions."""
    pairs: list[tuple[Any, Bound]] = []
    for load in collect(value, tvm.ir.TensorLoad):
        behind = known.behind.get(load.source, {}).items()
        pairs += [(load.indices[at], bound) for at, (bound, _) in behind]
    for choice in (*collect(value, tirx.Select), *collect(value, tvm.ir.Call)):
        if is_choice(choice):
            pairs += indices_asked(parts(choice)[0], known)
    return list(dict.fromkeys(bound for one, bound in pairs if structural_equal(one, index)))


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
        asks = any(other == bound and structural_equal(one, index) for one, other in pairs)
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
        if own == bound and structural_equal(load.indices[axis], index):
            return value
    return None


def _asks_nan(condition: Any) -> bool:
    return any(operator(one) == "isnan" for one in collect(condition, tvm.ir.Call))
