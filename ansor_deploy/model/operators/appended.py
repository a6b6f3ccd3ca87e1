"""Operators of our own, in no file: Append writes rows to a kept cache, Length checks a length.

    y = Append(cache, new, at)          of each sample: y[:, at + k] = new[:, k], all else as it was

Until memory is planned, Append is a function like any other, which copies the cache. Then y becomes
another name of the cache (`codegen/memory/appended.py`). That is possible because readers of y read
it from its first row on, and readers of the cache itself read only rows that counted before.

    n = Length(length)          the steps of one that is in its range
"""

from __future__ import annotations

from typing import Any

from ..._lazy_tvm import relax, tirx, tvm
from ..graph.graph import OWN
from .converting import Call
from .emitter import Emitter
from .indices import in_range
from .operator import Limit, Operator, Use

MARK = "ansor.appends"  # the attribute of a function that appends: the axis of rows


def append(emit: Emitter, cache: str, new: str, at: str, axis: int) -> str:
    """Write rows to a cache, for each sample behind the first `at` rows; returns the new cache."""
    return emit.own("Append", [cache, new, at], emit.dtype(cache), emit.shape(cache), axis=axis)


def converted(call: Call) -> Any:
    """The function that appends, with a mark by which it is recognised."""
    axis = call.attribute("axis")
    words = {"primfunc_name_hint": "append", "primfunc_attrs": {MARK: axis}}
    return call.emit(call.bb.call_te(_appended, *call.inputs, axis, **words))


def _appended(cache: Any, new: Any, at: Any, axis: int) -> Any:
    """Append in TE."""
    tokens = int(new.shape[axis])

    def element(*place: Any) -> Any:
        row = tirx.Cast("int64", place[axis]) - at[place[0]]
        inside = tirx.And(row >= 0, row < tokens)
        index = [row if k == axis else one for k, one in enumerate(place)]
        return tirx.if_then_else(inside, new[tuple(index)], cache[place])

    return tvm.te.compute(cache.shape, element, name="append")


def length(call: Call) -> Any:
    """The number of steps in a length; the call fails if the length is not in the range."""
    least, most, step = (call.attribute(name) for name in ("least", "most", "step"))
    of = call.attribute("of", "it")
    given = in_range(call, call.inputs[0], [most + 1], negative=False, least=least, of=of)
    if step == 1:
        return given
    each = relax.const(step, "int64")
    rest = call.emit(relax.op.floor_mod(given, each))
    rest = in_range(call, rest, [1], negative=False, of="what its steps leave")
    whole = call.emit(relax.op.subtract(given, rest))  # so that the check stays
    return call.emit(relax.op.floor_divide(whole, each))


def is_kept(use: Use, name: str) -> bool:
    """Whether a tensor is a cache that the library keeps."""
    context = use.graph.context
    return context is not None and any(name == one.input for one in context.caches)


_KEPT = Limit("it writes to a cache of a context", lambda use: not is_kept(use, use.input(0)))
OPERATORS = (
    Operator("Append", OWN, limits=(_KEPT,), convert=converted),
    Operator("Length", OWN, convert=length),
)
