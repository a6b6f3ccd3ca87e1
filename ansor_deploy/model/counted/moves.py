"""Rules for nodes that move elements, or compute each by itself: counted axes stay counted."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from ..graph.graph import FLOATS
from .known import Axes, Step
from .numbers import Number, least

BOOL = TensorProto.BOOL
_ALONE = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "Ceil", "Celu",
    "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp", "EyeLike", "Floor", "Gelu",
    "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg",
    "Not", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
    "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip
_TOGETHER = (
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu",
    "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip


def alone(step: Step) -> list[tuple[str, Axes]] | None:
    """A function of each element."""
    if step.known_shape(step.input(0)) is None or step.wants(1):
        return None
    return [(step.again(), step.axes(0))]


def of_steps(step: Step) -> list[tuple[str, Axes]] | None:
    """Dequantised numbers; their least value is noted if they have one scale."""
    scale, zero = (step.graph.value(step.input(at)) for at in (1, 2))
    kind = helper.tensor_dtype_to_np_dtype(step.dtype(step.input(0)))
    whole = np.issubdtype(kind, np.integer) and (zero is not None or not step.input(2))
    if whole and scale is not None and scale.size == 1:
        steps = np.iinfo(kind).min - (0 if zero is None else int(zero.item()))
        step.facts.least[step.node.output[0]] = np.float32(steps) * scale.reshape(())
    return alone(step)


def dropped(step: Step) -> list[tuple[str, Axes]] | None:
    """Dropout at inference: nothing is dropped, and its mask says so."""
    shape = step.known_shape(step.input(0))
    if shape is None or not step.wants(1):
        return alone(step)
    if step.graph.opset < 10 or (step.input(2) and step.listed(2) != [0]):
        return None
    step.room_for(*shape)
    return [(step.input(0), step.axes(0)), (step.constant(np.ones(shape), BOOL), step.axes(0))]


def together(step: Step) -> list[tuple[str, Axes]] | None:
    """An elementwise function of several tensors, which broadcast."""
    shapes = [step.known_shape(name) for name in step.node.input]
    if any(shape is None for shape in shapes):
        return None
    names, axes = fitted(step, list(step.node.input), max(len(one or ()) for one in shapes))
    made = step.again(*names)
    if step.node.op_type == "Where" and step.dtype(made) in FLOATS:
        finite = (_finite(step, name, len(step.shape(made))) for name in step.node.input[1:])
        step.facts.finite[step.node.output[0]] = frozenset.intersection(*finite)
    return [(made, axes)]


def _finite(step: Step, name: str, rank: int) -> frozenset[int]:
    """A result's axes along which a tensor is finite behind what counts. rank: the result's."""
    value = step.graph.value(name)
    if value is not None:
        return frozenset(range(rank) if np.isfinite(value).all() else ())
    more = rank - len(step.shape(name))
    return frozenset(axis + more for axis in step.facts.finite.get(name, ()))


def fitted(step: Step, names: list[str], rank: int) -> tuple[list[str], Axes]:
    """Tensors cut to the shortest where one is counted, and the counted axes of their result.

    Their counted sizes are equal in every run, so that nothing that counts is cut off.
    """
    axes: dict[int, Number] = {}
    for axis in range(-rank, 0):
        longer = [n for n in names if len(step.shape(n)) >= -axis and step.shape(n)[axis] != 1]
        owned = [(n, step.facts.axes.get(n, {}).get(len(step.shape(n)) + axis)) for n in longer]
        numbers = [number for _, number in owned if number is not None]
        if not numbers:
            numbers = _of_ones(step, names, axis) if not longer else []
        if not numbers:
            continue
        size = min((step.shape(n)[axis] for n in longer), default=1)
        cut = {n: step.cut(n, len(step.shape(n)) + axis, size) for n in longer}
        names = [cut.get(n, n) for n in names]
        exact = len(numbers) == len(longer)  # else some tensor's size is static
        axes[rank + axis] = numbers[0] if exact or size > least(numbers[0]) else size
    return names, axes


def _of_ones(step: Step, names: list[str], axis: int) -> list[Number]:
    """What counts along an axis where all tensors have an extent of one."""
    tall = [n for n in names if len(step.shape(n)) >= -axis]
    known = (step.facts.axes.get(n, {}).get(len(step.shape(n)) + axis) for n in tall)
    return [number for number in known if number is not None]


def transposed(step: Step) -> list[tuple[str, Axes]] | None:
    """The axes in another order."""
    if (shape := step.known_shape(step.input(0))) is None:
        return None
    order = step.attribute("perm") or list(reversed(range(len(shape))))
    own, finite = step.axes(0), step.facts.finite.get(step.input(0), ())
    step.facts.finite[step.node.output[0]] = frozenset(map(order.index, finite))
    return [(step.again(), {at: own[old] for at, old in enumerate(order) if old in own})]


def squeezed(step: Step) -> list[tuple[str, Axes]] | None:
    """Drop axes of extent one."""
    shape, own = step.known_shape(step.input(0)), step.axes(0)
    gone = step.listed(1, "axes")
    if shape is None or (gone is None and (step.input(1) or any(shape[at] == 1 for at in own))):
        return None
    listed = gone if gone is not None else [at for at, n in enumerate(shape) if n == 1]
    left = [at for at in range(len(shape)) if at not in {one % len(shape) for one in listed}]
    made = step.reshape(step.input(0), *(shape[at] for at in left))
    return [(made, {new: own[at] for new, at in enumerate(left) if at in own})]


def unsqueezed(step: Step) -> list[tuple[str, Axes]] | None:
    """Add axes of extent one."""
    shape, new = step.known_shape(step.input(0)), step.listed(1, "axes")
    if shape is None or new is None:
        return None
    rank = len(shape) + len(new)
    places = {one % rank for one in new}
    left = [at for at in range(rank) if at not in places]
    own = step.axes(0)
    return [(step.again(), {at: own[old] for old, at in enumerate(left) if old in own})]


def of_classes(step: Step) -> list[tuple[str, Axes]] | None:
    """OneHot: a new axis for each index, of classes."""
    shape, own = step.known_shape(step.input(0)), step.axes(0)
    if shape is None or step.axes(1) or step.axes(2):
        return None
    new = step.attribute("axis", -1) % (len(shape) + 1)
    made = step.again()
    axes = {at + (at >= new): n for at, n in own.items()}
    return [(made, axes)] if step.known_shape(made) else None


def from_depth(step: Step) -> list[tuple[str, Axes]] | None:
    """Blocks of places, with elements from the channels."""
    own, size = step.axes(0), step.attribute("blocksize", 1)
    if step.known_shape(step.input(0)) is None or 1 in own:
        return None
    return [(step.again(), {axis: n if axis == 0 else n * size for axis, n in own.items()})]


RULES = {
    **dict.fromkeys(_ALONE, alone),
    **dict.fromkeys(_TOGETHER, together),
    "DepthToSpace": from_depth,
    "DequantizeLinear": of_steps,
    "Dropout": dropped,
    "OneHot": of_classes,
    "Squeeze": squeezed,
    "Transpose": transposed,
    "Unsqueeze": unsqueezed,
}
