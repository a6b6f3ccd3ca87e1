"""Rules for nodes that reduce many elements to one: masked elements do not change the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from onnx import helper

from ..graph.graph import FLOATS
from ..operators.contractions import labels
from .known import Axes, Step
from .numbers import Number, Sum, least


def lowest(step: Step, name: str) -> Any:
    """The lowest value of a tensor's type."""
    return _end(step, name, -1)


def least_known(step: Step, name: str) -> Any:
    """A value that no element is below; for dequantised bytes, that of the lowest byte."""
    return step.facts.least.get(name, lowest(step, name))


def highest(step: Step, name: str) -> Any:
    """The highest value of a tensor's type."""
    return _end(step, name, 1)


def _end(step: Step, name: str, sign: int) -> Any:
    kind = step.dtype(name)
    if kind in FLOATS:
        return sign * np.inf
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if dtype == np.bool_:
        return sign > 0
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _zero(step: Step, name: str) -> int:
    return 0


def _one(step: Step, name: str) -> int:
    return 1


_NEUTRAL: dict[str, Callable[[Step, str], Any]] = {
    "ArgMax": lowest,
    "ArgMin": highest,
    "ReduceL1": _zero,
    "ReduceL2": _zero,
    "ReduceLogSum": _zero,
    "ReduceLogSumExp": lowest,
    "ReduceMax": least_known,
    "ReduceMin": highest,
    "ReduceProd": _one,
    "ReduceSum": _zero,
    "ReduceSumSquare": _zero,
}


def reduced(step: Step) -> list[tuple[str, Axes]] | None:
    """Reductions along some axes."""
    shape = step.known_shape(step.input(0))
    axes = _axes(step, len(shape or ()))
    if not shape or axes is None:
        return None
    op, name, own = step.node.op_type, step.input(0), step.axes(0)
    within = {at: n for at, n in own.items() if at in axes}
    mean = op == "ReduceMean" and within
    if mean:
        op = "ReduceSum"
    data = step.masked(name, within, _NEUTRAL[op](step, name)) if within else name
    keep = step.attribute("keepdims", 1)
    if op.startswith("Arg"):
        made = step.again(data)
        if within and step.attribute("select_last_index", 0):
            # The last of equal elements may be behind what counts: then it is the last counted one.
            made = step("Min", made, step("Sub", step.scalar(*within.values()), step.scalar(1)))
    elif op == "ReduceSum":
        made = step.reduce_in_turn(op, data, axes, keep) if axes else step("Identity", data)
    else:
        made = step.reduce(op, data, *axes, keepdims=keep) if axes else step("Identity", data)
    if mean:
        made = step("Div", made, elements(step, axes))
    kept = {at: at if keep else at - sum(one < at for one in axes) for at in own if at not in axes}
    return [(made, {new: own[at] for at, new in kept.items()})]


def _axes(step: Step, rank: int) -> list[int] | None:
    if step.node.op_type.startswith("Arg"):
        return [step.attribute("axis", 0) % rank] if rank else None
    listed = step.attribute("axes")
    if listed is None and step.input(1):
        listed = step.listed(1)
        if listed is None:
            return None
    if not listed and step.attribute("noop_with_empty_axes", 0):
        return []
    return sorted(axis % rank for axis in listed or range(rank))


def elements(step: Step, axes: list[int]) -> str:
    """The number of elements in each mean; one instead of zero, as in ONNX Runtime."""
    made = step.constant(1, step.dtype(step.input(0)))
    for axis in axes:
        number = step.cast(step.scalar(step.dims(0)[axis]), step.dtype(step.input(0)))
        made = step("Mul", made, number)
    return step("Max", made, step.constant(1, step.dtype(step.input(0))))


def shared_out(step: Step) -> list[tuple[str, Axes]] | None:
    """Softmax and LogSoftmax."""
    shape, own = step.known_shape(step.input(0)), step.axes(0)
    last = -1 if step.graph.opset >= 13 else 1
    if not shape:
        return None
    axis = step.attribute("axis", last) % len(shape)
    rest = step.graph.opset < 13  # over all axes from this one on
    within = {at: n for at, n in own.items() if at == axis or (rest and at > axis)}
    data = step.masked(step.input(0), within, -np.inf)
    made = step.again(data) if rest else _along_last(step, data, axis)
    if step.node.op_type == "Softmax" and all(least(n) > 0 for n in within.values()):
        # Behind what counts there are zeros, or a whole row is NaN, as it would be without room.
        step.facts.finite[step.node.output[0]] = frozenset(within)
    return [(made, own)]


def _along_last(step: Step, data: str, axis: int) -> str:
    """The node along an axis, which is made the last, so that whole rows count or do not."""
    order = [at for at in range(len(step.shape(data))) if at != axis] + [axis]
    back = [order.index(at) for at in range(len(order))]
    if order == back:
        return step.again(data)
    turned = step("Transpose", data, perm=order)
    return step("Transpose", step(step.node.op_type, turned, axis=-1), perm=back)


def cumulated(step: Step) -> list[tuple[str, Axes]] | None:
    """Sums of the elements before each, or behind it."""
    shape, axis, own = step.known_shape(step.input(0)), step.listed(1), step.axes(0)
    if not shape or not axis:
        return None
    behind = axis[0] % len(shape) if step.attribute("reverse", 0) else -1
    within = {at: n for at, n in own.items() if at == behind}
    return [(step.again(step.masked(step.input(0), within)), own)]


def multiplied(step: Step) -> list[tuple[str, Axes]] | None:
    """Matrix products: rows, columns, batches and the summed axis may be counted."""
    shapes = [step.known_shape(step.input(at)) for at in (0, 1)]
    if not all(shapes) or any(len(one or ()) < 2 for one in shapes):
        return None
    a, b = (len(one or ()) for one in shapes)
    rank = max(a, b)
    flipped = [0, 0]
    if step.node.op_type == "Gemm":
        flipped = [step.attribute("transA", 0), step.attribute("transB", 0)]
    summed = (a - 1 - flipped[0], b - 2 + flipped[1])
    within = [summed[at] in step.axes(at) for at in (0, 1)]
    zeros = [_zero_point(step, at + 2) if within[at] else 0 for at in (0, 1)]
    if None in zeros:
        return None
    both = all(within)
    # A product with zero is zero if the other factor is finite, so that one is not masked.
    finite = step.facts.finite
    left = [at for at in (0, 1) if both and summed[at] in finite.get(step.input(at), ())][-1:]
    names = [
        step.masked(
            step.input(at), {k: n for k, n in step.axes(at).items() if k == summed[at]}, zeros[at]
        )
        if at not in left else step.input(at)
        for at in (0, 1)
    ]  # fmt: skip
    axes = {k + rank - a: n for k, n in step.axes(0).items() if k < a - 2}
    axes |= {k + rank - b: n for k, n in step.axes(1).items() if k < b - 2}
    if (rows := step.axes(0).get(a - 2 + flipped[0])) is not None:
        axes[rank - 2] = rows
    if (columns := step.axes(1).get(b - 1 - flipped[1])) is not None:
        axes[rank - 1] = columns
    return [(step.again(*names), axes)]


def _zero_point(step: Step, at: int) -> str | int | None:
    """The zero point of a factor, 0 for floats; None if the factor has several."""
    if step.node.op_type != "MatMulInteger" or not (name := step.input(at)):
        return 0
    shape = step.known_shape(name)
    return step.reshape(name) if shape is not None and prod(shape) == 1 else None


def contracted(step: Step) -> list[tuple[str, Axes]] | None:
    """Einsum: along summed axes, what does not count is zero in each factor."""
    ranks = [len(step.shape(name)) for name in step.node.input if step.known_shape(name)]
    found = labels(step.attribute("equation"), ranks)
    if found is None or len(ranks) < len(step.node.input):
        return None
    terms, made = found
    names, counted = list(step.node.input), dict[str, Number]()
    for label in dict.fromkeys("".join(terms)):
        names, number = _alike(step, names, terms, label)
        if isinstance(number, Sum):
            counted[label] = number
    summed = counted.keys() - set(made)
    for at, term in enumerate(terms):
        own = step.facts.axes.get(step.input(at), {})
        axes = {k: counted[n] for k, n in enumerate(term) if n in summed and k in own}
        names[at] = step.masked(names[at], axes)
    return [(step.again(*names), {k: counted[n] for k, n in enumerate(made) if n in counted})]


def _alike(
    step: Step, names: list[str], terms: Sequence[str], label: str
) -> tuple[list[str], Number]:
    """The tensors cut to equal sizes along all axes of a label, and how much of these counts."""
    places = [(at, k) for at, term in enumerate(terms) for k, n in enumerate(term) if n == label]
    long = [(at, k) for at, k in places if step.shape(names[at])[k] != 1]
    numbers = [step.dims(at)[k] for at, k in long]
    size = min((step.shape(names[at])[k] for at, k in long), default=1)
    for at, k in long:
        names[at] = step.cut(names[at], k, size)
    return names, next((n for n in numbers if isinstance(n, Sum)), size)


def quantised(step: Step) -> list[tuple[str, Axes]]:
    """Bytes, with a scale by the minimum and maximum of what counts, and of zero."""
    data = step.masked(step.input(0), step.axes(0))
    made, *of_all = step.several("DynamicQuantizeLinear", [data], 3)
    return [(made, step.axes(0)), *((one, {}) for one in of_all)]


RULES = {
    **dict.fromkeys((*_NEUTRAL, "ReduceMean"), reduced),
    **dict.fromkeys(("Softmax", "LogSoftmax"), shared_out),
    **dict.fromkeys(("Gemm", "MatMul", "MatMulInteger"), multiplied),
    "CumSum": cumulated,
    "Einsum": contracted,
    "DynamicQuantizeLinear": quantised,
}
