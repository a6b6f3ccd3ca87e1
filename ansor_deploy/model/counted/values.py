"""The elements of small tensors of numbers, as far as nodes determine them.

Exporters also compute sizes as floats: ceil(n / 2 - 0.5). These are fractions (`shares.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from onnx import NodeProto

from ..onnx.skeleton import attribute, name_of
from .numbers import (
    Number,
    Sum,
    floored,
    is_less,
    larger,
    least,
    most,
    quotient,
    root,
    smaller,
    symbol,
)
from .quotients import Quotients
from .shares import is_whole, keeps, plain, rounded, share

Values: TypeAlias = np.ndarray  # of objects, each of them a `Number`
_MOST = 64  # the most elements of a tensor that is tracked
_MOST_TERMS = 4  # the most terms of two numbers that are multiplied


def tracked(
    node: NodeProto, given: Sequence[Values | None], whole: bool, divided: Quotients
) -> Values | None:
    """The result of a node from what is known of its inputs; None if that is not known.

    given: for each input; None for one that is left out. whole: whether the result is of integers.
    divided: the divisions so far, to which new ones are added.
    """
    function = _MOVES.get(node.op_type)
    if node.op_type in ("Ceil", "Floor") or (node.op_type == "Cast" and whole):
        made = _rounded(node, given[0])
    elif function is not None:
        made = function(node, given)
    elif node.op_type in _PAIRS or node.op_type in _REDUCED:
        made = _computed(node, given, whole, divided)
    else:
        return None
    return None if made is None or made.size > _MOST else made


def certain(values: Values | None) -> list[int] | None:
    """The elements of a tensor as ints; None unless all are known."""
    if values is None or not all(isinstance(one, int) for one in values.flat):
        return None
    return list(values.flat)


def objects(array: Any) -> Values:
    """An array of numbers as values."""
    made = np.empty(np.shape(array), object)
    flat = np.asarray(array, object).reshape(-1)
    made.reshape(-1)[:] = [one if isinstance(one, Sum) else plain(one) for one in flat]
    return made


# ---- moving elements -------------------------------------------------------------------------


def _axes(node: NodeProto, given: Sequence[Values | None], rank: int) -> tuple[int, ...] | None:
    listed = attribute(node, "axes")
    if listed is None and len(given) > 1:
        listed = certain(given[1])
    return None if listed is None else tuple(int(axis) % rank for axis in listed)


def _gather(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    data, places = given
    if data is None or places is None or certain(places) is None:
        return None
    return objects(np.take(data, places.astype(np.int64), attribute(node, "axis", 0)))


def _concat(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    known = [one for one in given if one is not None]
    return np.concatenate(known, attribute(node, "axis", 0)) if len(known) == len(given) else None


def _unsqueeze(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    data = given[0]
    listed = attribute(node, "axes") or (certain(given[1]) if len(given) > 1 else None)
    return None if data is None or listed is None else np.expand_dims(data, tuple(listed))


def _squeeze(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    data = given[0]
    return None if data is None else np.squeeze(data, _axes(node, given, data.ndim))


def _reshape(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    data, shape = given[0], certain(given[1])
    if data is None or shape is None:
        return None
    return data.reshape([data.shape[at] if n == 0 else n for at, n in enumerate(shape)])


def _transpose(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    return None if given[0] is None else given[0].transpose(attribute(node, "perm"))


def _slice(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    data, *bounds = given
    if len(given) == 1:  # before opset 10
        begin, end, axes, steps = (attribute(node, n) for n in ("starts", "ends", "axes", "steps"))
    else:
        begin, end, axes, steps = map(certain, (*bounds, None, None)[:4])
    if data is None or begin is None or end is None:
        return None
    parts = [slice(None)] * data.ndim
    for at, first in enumerate(begin):
        axis, step = (axes or range(len(begin)))[at], (steps or [1] * len(begin))[at]
        last = None if step < 0 and end[at] < -data.shape[axis] else end[at]
        parts[axis] = slice(first, last, step)
    return data[tuple(parts)]


def _filled(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    shape, value = certain(given[0]), attribute(node, "value")
    if shape is None or int(np.prod(shape)) > _MOST:
        return None
    item = 0 if value is None else int.from_bytes(value.raw_data, "little", signed=True)
    known = value is None or value.data_type == 7
    return objects(np.full(shape, item, np.int64)) if known else None


def _one_hot(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    """Rows of two numbers, of which one stands at the place that is asked for."""
    places, depth = (certain(one) for one in given[:2])
    if given[0] is None or given[2] is None or places is None or depth is None:
        return None
    size, (off, on) = depth[0], given[2]
    if not 0 < size <= _MOST or any(not -size <= place < size for place in places):
        return None
    rows = [[on if at == place % size else off for at in range(size)] for place in places]
    made = objects(rows).reshape(*given[0].shape, size)
    return np.moveaxis(made, -1, attribute(node, "axis", -1))


def _same(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    return given[0]


def _clipped(node: NodeProto, given: Sequence[Values | None]) -> Values | None:
    """Numbers clipped to bounds."""
    low, high = (None if one is None else one.item() for one in (*given[1:], None, None)[:2])
    if given[0] is None or not all(isinstance(n, int | None) for n in (low, high)):
        return None
    made = np.empty(given[0].shape, object)
    for at, one in enumerate(given[0].flat):
        made.flat[at] = _between(one, low, high, node.output[0], at)
    return None if None in made.flat else made


def _between(
    number: Number, low: int | None, high: int | None, tensor: str, at: int
) -> Number | None:
    """A number clipped to bounds; an element of the result if that is open."""
    made: Number | None = number
    for bound, pick in ((low, larger), (high, smaller)):
        made = made if bound is None or made is None else pick(made, bound)
    if made is not None or not isinstance(number, Sum) or not is_whole(number):
        return made
    ends = [least(number), most(number)]
    ends = ends if low is None else [max(end, low) for end in ends]
    ends = ends if high is None else [min(end, high) for end in ends]
    return symbol(tensor, at, (ends[0], ends[1]), number.cause)


_MOVES: dict[str, Callable[[NodeProto, Sequence[Values | None]], Values | None]] = {
    "Cast": _same,
    "Clip": _clipped,
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "Gather": _gather,
    "Identity": _same,
    "OneHot": _one_hot,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}


def _rounded(node: NodeProto, values: Values | None) -> Values | None:
    """Rounded numbers; one that is open is an element of the result."""
    if values is None:
        return None
    made = np.empty(values.shape, object)
    for at, one in enumerate(values.flat):
        made.flat[at] = rounded(node.op_type, one, node.output[0], at)
    return made


# ---- computing elements ----------------------------------------------------------------------


def _both(one: Number, other: Number) -> Number | None:
    return None if isinstance(one, Sum) and isinstance(other, Sum) else one * other


def _product(one: Number, other: Number) -> Number | None:
    terms = [len(n.factors) for n in (one, other) if isinstance(n, Sum)]
    return None if sum(terms) > _MOST_TERMS else one * other


def _quotient(one: Number, other: Number) -> Number | None:
    if isinstance(other, Sum):
        return quotient(one, other) if least(other) > 0 else None
    if not other:
        return None
    if not isinstance(one, Sum):  # towards zero
        return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
    return floored(one, other) if other > 0 and least(one) >= 0 else quotient(one, other)


def _equal(one: Number, other: Number) -> Number | None:
    apart = other - one
    if not isinstance(apart, Sum):
        return int(apart == 0)
    return 0 if least(apart) > 0 or most(apart) < 0 else None


def _less(one: Number, other: Number) -> Number | None:
    found = is_less(one, other)
    return None if found is None else int(found)


def _not(one: Number) -> Number | None:
    return 1 - one


def _remainder(one: Number, other: Number) -> Number | None:
    """The remainder of known numbers; `remainders.py` rewrites others."""
    if isinstance(one, Sum) or isinstance(other, Sum) or one < 0 or other <= 0:
        return None  # for a negative number an attribute decides the sign
    return one % other


def _power(one: Number, other: Number) -> Number | None:
    """The side of a square, as exporters write it; other powers are not followed."""
    return root(one) if other == Fraction(1, 2) and is_whole(one) else None


def _where(condition: Number, one: Number, other: Number) -> Number | None:
    if isinstance(condition, Sum):
        return one if one == other else None
    return one if condition else other


def _flipped(one: Number, other: Number, function: Callable[..., Number | None]) -> Number | None:
    return function(other, one)


def _negated(one: Number, other: Number, function: Callable[..., Number | None]) -> Number | None:
    found = function(other, one)
    return None if found is None else 1 - found


_PAIRS: dict[str, Callable[..., Number | None]] = {
    "Add": lambda one, other: one + other,
    "And": _both,
    "Div": _quotient,
    "Equal": _equal,
    "Greater": partial(_flipped, function=_less),
    "GreaterOrEqual": lambda one, other: _negated(other, one, _less),
    "Less": _less,
    "LessOrEqual": lambda one, other: _negated(one, other, _less),
    "Max": larger,
    "Min": smaller,
    "Mod": _remainder,
    "Mul": _product,
    "Neg": lambda one: one * -1,
    "Not": _not,
    "Pow": _power,
    "Share": share,
    "Sub": lambda one, other: one - other,
    "Where": _where,
}
_REDUCED = {"ReduceMax": "Max", "ReduceMin": "Min", "ReduceProd": "Mul", "ReduceSum": "Add"}
_TRUTHS = ("And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not")
FOLLOWED = frozenset((*_MOVES, *_PAIRS, *_REDUCED, "Ceil", "Floor"))  # what `tracked` computes


def _computed(
    node: NodeProto, given: Sequence[Values | None], whole: bool, divided: Quotients
) -> Values | None:
    """Compute each element; one that is open is an element of the result, with bounds."""
    operator = _REDUCED.get(node.op_type, node.op_type)
    found = _rows(node, given) if node.op_type in _REDUCED else _columns(given)
    if found is None:
        return None
    operator = "Share" if operator == "Div" and not whole else operator
    shape, columns = found
    made = np.empty(len(columns), object)
    for at, column in enumerate(columns):
        made[at] = _element(node, operator, at, column, divided)
        if made[at] is None:
            return None
    return made.reshape(shape)


def _columns(
    given: Sequence[Values | None],
) -> tuple[tuple[int, ...], list[tuple[Number, ...]]] | None:
    """The shape that tensors broadcast to, and their elements at each place."""
    if any(one is None for one in given):
        return None
    spread = np.broadcast_arrays(*given)
    return spread[0].shape, list(zip(*(one.flat for one in spread), strict=True))


def _rows(
    node: NodeProto, given: Sequence[Values | None]
) -> tuple[tuple[int, ...], list[tuple[Number, ...]]] | None:
    """The shape of a reduction, and the elements that each of its results is made from."""
    if (data := given[0]) is None:
        return None
    axes = _axes(node, given, data.ndim) or tuple(range(data.ndim))
    kept = [at for at in range(data.ndim) if at not in axes]
    flat = data.transpose([*kept, *axes]).reshape(*(data.shape[at] for at in kept), -1)
    keep = attribute(node, "keepdims", 1)
    shape = tuple(1 if at in axes else n for at, n in enumerate(data.shape) if keep or at in kept)
    return shape, [tuple(row) for row in flat.reshape(-1, flat.shape[-1])]


def _element(
    node: NodeProto, operator: str, at: int, given: tuple[Number, ...], divided: Quotients
) -> Number | None:
    if not keeps(operator, given):
        return None
    function = _PAIRS[operator]
    fold = node.op_type in _REDUCED or operator in ("Min", "Max")
    exact = _folded(function, given) if fold else function(*given)
    if exact is not None or operator in ("Mod", "Pow", "Share") or not all(map(is_whole, given)):
        return exact
    if (bounds := _bounds(operator, function, given, fold=fold)) is None:
        return None
    cause = next(one.cause for one in given if isinstance(one, Sum))
    made = symbol(node.output[0], at, bounds, cause)
    is_floor = operator == "Div" and least(given[0]) >= 0
    return divided.note(given[0], least(given[1]), made) if is_floor else made


def _folded(function: Callable[..., Number | None], given: Sequence[Number]) -> Number | None:
    made: Number | None = given[0]
    for one in given[1:]:
        made = None if made is None else function(made, one)
    return made


def _bounds(
    operator: str, function: Callable[..., Number | None], given: tuple[Number, ...], *, fold: bool
) -> tuple[int, int] | None:
    """The bounds of an open result: its extremes where all operands are at their bounds."""
    if operator in _TRUTHS:
        return 0, 1
    ends = [(least(one), most(one)) for one in given]
    if operator == "Where":
        return min(low for low, _ in ends[1:]), max(high for _, high in ends[1:])
    if operator == "Div" and (ends[1][0] <= 0 or ends[1][0] != ends[1][1]):
        return None
    if fold:
        bounds = ends[0]
        for end in ends[1:]:
            reached = [function(*pair) for pair in product(bounds, end)]
            bounds = min(map(int, reached)), max(map(int, reached))  # type: ignore[arg-type]
        return bounds
    reached = [function(*corner) for corner in product(*ends)]
    return min(map(int, reached)), max(map(int, reached))  # type: ignore[arg-type]


def named(node: NodeProto) -> str:
    """The node's operator and name, for messages."""
    return f"{node.op_type} '{name_of(node)}'"
