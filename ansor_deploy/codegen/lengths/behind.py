"""What lies behind the part of a tensor that counts, where that changes no sum and no maximum.

    s = where(k < n, x, -inf) ; m = max(s) ; e = exp(s - m) ; t = sum(e)       from n on: -inf, 0

Where that is the whole of a row, numbers are NaN that a network without what lies behind makes
NaN as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..._tvm import collect, structural_equal, tirx, tvm
from ..blocks import Leaf
from .asked import Known, asked, is_choice, operator, parts
from .bound import Bound

_NEUTRAL = {tirx.Add: 0.0, tirx.Max: -math.inf}


def note_behind(leaf: Leaf, known: Known) -> None:
    """Note what lies behind a bound in the buffer that a block stores to, which no other does."""
    store = leaf.block.body
    for axis, index in enumerate(store.indices):
        if isinstance(index, tirx.Var):
            for bound in _bounds(store.value, index, known):
                if (value := _value(store.value, index, bound, known)) is not None:
                    known.behind[store.buffer] = axis, bound, value


def summed_up(leaf: Leaf, known: Known) -> Iterator[tuple[Any, Bound]]:
    """The axes along which a block adds up, or takes the most, of nothing behind a bound."""
    store = leaf.block.body
    neutral = next((_NEUTRAL[k] for k in _NEUTRAL if isinstance(store.value, k)), None)
    own = tirx.BufferLoad(store.buffer, store.indices)
    # What a first step begins is not begun where that step is left out.
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


def _bounds(value: Any, var: Any, known: Known) -> set[Bound]:
    """Bounds that may hold for a variable: of what is read at it, and of conditions."""
    found = set()
    for load in collect(value, tvm.ir.TensorLoad):
        axis, bound, _ = known.behind.get(load.source, (0, None, 0.0))
        if bound and load.indices[axis].same_as(var):
            found.add(bound)
    for choice in (*collect(value, tirx.Select), *collect(value, tvm.ir.Call)):
        if is_choice(choice):
            limits = asked(parts(choice)[0], known)
            found |= {bound for (one, _), bound in limits.items() if one.same_as(var)}
    return found


def _value(value: Any, var: Any, bound: Bound, known: Known) -> float | None:
    """What a value is where a variable is not below a bound; None where that is open."""

    def of(one: Any) -> float | None:
        return _value(one, var, bound, known)

    if isinstance(value, (tirx.FloatImm, tirx.IntImm)):
        return float(value.value)
    if isinstance(value, tvm.ir.TensorLoad):
        return _loaded(value, var, bound, known)
    if is_choice(value):
        condition, _, no = parts(value)
        limits = asked(condition, known).items()
        asks = any(one.same_as(var) and other == bound for (one, _), other in limits)
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


def _loaded(load: Any, var: Any, bound: Bound, known: Known) -> float | None:
    if load.source in known.values:
        return known.values[load.source]
    axis, own, value = known.behind.get(load.source, (0, None, 0.0))
    return value if own == bound and load.indices[axis].same_as(var) else None


def _asks_nan(condition: Any) -> bool:
    return any(operator(one) == "isnan" for one in collect(condition, tvm.ir.Call))
