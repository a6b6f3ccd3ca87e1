"""The sides of images among open axes, and whether they may have other sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from .axes import each_with, size_at
from .batches import Asked, Span
from .misfit import Trials
from .onnx.bind import declared_shape
from .onnx.sizes import Axis
from .onnx.skeleton import nodes
from .onnx.usual_sizes import colours_at, is_line, is_of_image, is_of_time, side_of_patch

Shape = tuple[int, ...]
OF_IMAGES = 4  # the least rank of a tensor of images
_LINE = 4  # an image of a line of text is at least this many times as wide as high
# Networks that halve their data take multiples of 32; with windows of the smallest, of more.
STEPS = (32, 64, 128)


def any_size(
    trials: Trials, given: Mapping[str, Shape], shapes: Asked, sides: Sequence[Axis]
) -> Asked:
    """Ranges for the sides of images, in `shapes`, if the graph takes other sizes; else none.

    Tried are the least size and the one before the largest, and first the least with one side
    alone, since a graph may take squares. Sides that are multiples of others may have to stay so.
    given: the shapes of the other inputs.
    """
    sizes = [size_at(shapes, axis) for axis in sides]
    every = (*STEPS, side_of_patch(nodes(trials.proto.graph))) if sides else ()
    for squares, step in product((False, True), every):
        for steps in ([step] * len(sides), [_part(step, size, max(sizes)) for size in sizes]):
            pairs = [*zip(sizes, steps, strict=True)]
            if step == 1 or any(not by or n % by or n < 2 * by for n, by in pairs):
                continue
            half, less, flat = other_sides(shapes, sides, steps)
            tried = (half, less) if squares else (half, less, flat)
            if not any(trials.misfit({**given, **one}) for one in tried):  # type: ignore[dict-item]
                spans = [Span(n // by // 2 * by, n, by) for n, by in pairs]
                return each_with(shapes, sides, spans)
    return {}


def _part(step: int, size: int, largest: int) -> int:
    """The step of a side that is a part of the largest one, which has this step; 0 if none is."""
    part, rest = divmod(step * size, largest)
    return 0 if rest else part


def other_sides(shapes: Asked, sides: Sequence[Axis], steps: Sequence[int]) -> list[Asked]:
    """The shapes with half of the sides, with a step less, and with half of the widths alone.

    steps: of each side.
    """
    sizes = [size_at(shapes, axis) for axis in sides]
    half = [size // step // 2 * step for size, step in zip(sizes, steps, strict=True)]
    less = [size - step for size, step in zip(sizes, steps, strict=True)]
    behind = [len(shapes[axis.value.name]) - axis.at for axis in sides]
    flat = [h if at == behind[-1] else n for h, n, at in zip(half, sizes, behind, strict=True)]
    return [each_with(shapes, sides, each) for each in (half, less, flat)]


def is_side(axis: Axis, shapes: Asked) -> bool:
    """Whether the axis is the height or the width of images."""
    shape = declared_shape(axis.value) or ()
    rank = len(shape)
    if not is_of_image(axis.value) or is_line_of(axis, shapes):
        return False
    behind = rank - 1 if colours_at(shape) == rank - 1 else rank
    return behind - 2 <= axis.at < behind and not is_of_time(axis.name)


def is_line_of(axis: Axis, shapes: Asked) -> bool:
    """Whether images are lines of text, judged by the file or the height that the graph takes."""
    declared, chosen = declared_shape(axis.value) or (), shapes[axis.value.name]
    if is_line(declared) or len(declared) != OF_IMAGES:
        return is_line(declared)
    high, long = (one.most if isinstance(one, Span) else one for one in chosen[2:])
    return long >= _LINE * high and is_line((*declared[:2], high, declared[3]))


def is_height(axis: Axis, shapes: Asked) -> bool:
    """Whether the axis is the height of lines of text."""
    return axis.at == 2 and is_line_of(axis, shapes)
