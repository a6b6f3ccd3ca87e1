"""Sums and means of very many elements, reduced along one axis after the other.

A long sum is added up in a few partial sums, one element after the other. For 400,000 equal
elements that is off by thousands of roundings, but only by a few along axes of 640.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from onnx import TensorProto

from ..graph.graph import Shape
from .emitter import Emitter
from .operator import Operator

MANY = 1 << 16  # with this many elements, one long sum is off by more than a few roundings
# The same where each sum has one partial sum, as the sums of channels that lie side by side.
MANY_IN_ONE = 1 << 10
_ROW = 1 << 10  # the most elements that are added up first if all are along one axis
_ROW_IN_RANGE = 1 << 6  # the same in a range: runs leave out rows in which nothing counts


def in_turn(emit: Emitter, op: str, name: str, shape: Shape, axes: Sequence[int]) -> str:
    """Reduce axes of a tensor of this shape, and keep them; op: ReduceSum or ReduceMean."""
    kept = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    if len(axes) == 1 and (row := _row(emit, shape, axes[0])) > 1:
        (axis,) = axes
        name = emit.reshape(name, *shape[:axis], shape[axis] // row, row, *shape[axis + 1 :])
        axes = (axis, axis + 1)
    return emit.reshape(emit.reduce_in_turn(op, name, axes), *kept)


def _row(emit: Emitter, shape: Shape, axis: int) -> int:
    """How many elements along an axis are added up first: fewer than would be split again."""
    most = MANY_IN_ONE // 2 if _side_by_side([axis], len(shape)) else _ROW
    return gcd(shape[axis], _ROW_IN_RANGE if emit.graph.ranges else most)


def _averaged(emit: Emitter) -> str | None:
    """The mean over the positions of each channel of an image."""
    shape = emit.shape(emit.input(0))
    axes = range(2, len(shape))
    return _long(emit, "ReduceMean", emit.input(0), axes, MANY_IN_ONE, keep=True)


def _squared(emit: Emitter) -> str | None:
    """A sum of squares over any axes, or its root; None if the axes are not known."""
    name = emit.input(0)
    total = _over_axes(emit, "ReduceSum", emit("Mul", name, name))
    return emit("Sqrt", total) if total and emit.node.op_type == "ReduceL2" else total


def _reduced(emit: Emitter) -> str | None:
    """A sum or mean over any axes; None if these are not known."""
    return _over_axes(emit, emit.node.op_type, emit.input(0))


def _over_axes(emit: Emitter, op: str, name: str) -> str | None:
    """A reduction of a tensor of the input's shape, over the node's axes."""
    listed, rank = emit.attribute("axes"), len(emit.shape(emit.input(0)))
    if given := emit.input(1):
        known = emit.graph.value(given)
        listed = None if known is None else known.tolist()
    if not listed and (given or emit.attribute("noop_with_empty_axes", 0)):
        return None
    axes = sorted({axis % rank for axis in listed or range(rank)})
    many = MANY_IN_ONE if _side_by_side(axes, rank) else MANY
    return _long(emit, op, name, axes, many, keep=bool(emit.attribute("keepdims", 1)))


def _side_by_side(axes: Sequence[int], rank: int) -> bool:
    """Whether sums lie side by side, as an image's do where its channels are stored last."""
    return axes[-1] < rank - 1 or (rank > 3 and list(axes) == list(range(2, rank)))


def _long(
    emit: Emitter, op: str, name: str, axes: Sequence[int], many: int, *, keep: bool
) -> str | None:
    """A reduction of at least `many` elements; None if they are fewer, or cannot be split.

    name: a tensor of the shape and type of the node's input.
    """
    shape = emit.shape(emit.input(0))
    extents = [shape[axis] for axis in axes if shape[axis] > 1]
    if prod(extents) < many or emit.dtype(emit.input(0)) != TensorProto.FLOAT:
        return None
    if len(extents) == 1 and gcd(extents[0], _ROW) == 1:
        return None
    made = in_turn(emit, op, name, shape, [axis for axis in axes if shape[axis] > 1])
    left = [extent for axis, extent in enumerate(shape) if axis not in axes]
    return made if keep else emit.reshape(made, *left)


OPERATORS = (
    Operator("GlobalAveragePool", expand=_averaged),
    Operator("ReduceL2", expand=_squared),
    Operator("ReduceMean", expand=_reduced),
    Operator("ReduceSum", expand=_reduced),
    Operator("ReduceSumSquare", expand=_squared),
)
