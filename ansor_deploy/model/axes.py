"""Shapes with other sizes at some of their axes."""

from __future__ import annotations

from collections.abc import Sequence

from .batches import Asked, Span
from .onnx.sizes import Axis


def size_at(shapes: Asked, axis: Axis) -> int:
    """The size of an axis, or the largest of its range."""
    size = shapes[axis.value.name][axis.at]
    return size.most if isinstance(size, Span) else size


def each_with(shapes: Asked, axes: Sequence[Axis], sizes: Sequence[int | Span]) -> Asked:
    """The shapes with another size at each of some places."""
    for axis, size in zip(axes, sizes, strict=True):
        shapes = with_size(shapes, [axis], size)
    return shapes


def scaled(shapes: Asked, places: Sequence[Axis], size: int | Span) -> Asked:
    """The shapes with another size at the smallest place; the others stay multiples of that."""
    least = min(size_at(shapes, axis) for axis in places)
    times = [size_at(shapes, axis) // least for axis in places]
    if isinstance(size, int):
        return each_with(shapes, places, [size * by for by in times])
    return each_with(
        shapes, places, [Span(size.least * by, size.most * by, size.step * by) for by in times]
    )


def with_size(shapes: Asked, places: Sequence[Axis], size: int | Span) -> Asked:
    """The shapes with another size at some places."""
    axes = {(axis.value.name, axis.at) for axis in places}
    return {
        name: tuple(size if (name, at) in axes else n for at, n in enumerate(shape))
        for name, shape in shapes.items()
    }
