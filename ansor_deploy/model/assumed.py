"""Sizes that a build takes where a file leaves them open, and nobody gave any.

A batch is 1. One length is a range: as far as a table of positions goes, or else the usual one.
What else is open, such as height and width, or the rows of caches, is the user's to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import ModelProto

from .batches import Asked, Span, span_of, with_rows
from .caches import found_caches
from .misfit import misfit
from .onnx.size_names import SizeName
from .onnx.sizes import Axis, open_axes, proposals

Shape = tuple[int, ...]


def assumed(proto: ModelProto, given: Asked) -> Asked:
    """Shapes for the inputs that are open beside those given; none where that is not clear.

    Where a range was given, axes of the same name have it as well.
    """
    axes = [axis for axis in open_axes(proto) if axis.value.name not in given]
    if not axes or next(found_caches(proto), None):
        return {}
    span = span_of(given)
    fixed = with_rows(given, span.most if span else 0)
    fitting = [one for one in proposals(proto, fixed) if not misfit(proto, {**fixed, **one})]
    if not fitting:
        return {}
    given_names = _names(proto, given)
    lengths = {axis.name for axis in axes if not _is_batch(axis, fitting[0])}
    lengths -= {name for name, size in given_names.items() if isinstance(size, int)}
    if not lengths:
        return fitting[0]
    (name, *others) = lengths
    places = [axis for axis in axes if axis.name == name]
    if others or SizeName(name, lengths).is_sum or any(axis.at == 0 for axis in places):
        return {}
    if span:
        return _with(fitting[0], places, span) if given_names.get(name) == span else {}
    most = max(shapes[places[0].value.name][places[0].at] for shapes in fitting)
    least = next(_fitting(proto, fixed, fitting[0], places, most), most)
    return _with(fitting[0], places, Span(least, most)) if least < most else {}


def _names(proto: ModelProto, given: Asked) -> dict[str, int | Span]:
    """What axes were given that are open, by their names."""
    axes = (axis for axis in open_axes(proto) if axis.value.name in given)
    return {axis.name: given[axis.value.name][axis.at] for axis in axes}


def _is_batch(axis: Axis, shapes: Mapping[str, Shape]) -> bool:
    named = "batch" in axis.name.lower()
    return shapes[axis.value.name][axis.at] == 1 and (named or axis.at == 0)


def _fitting(
    proto: ModelProto,
    given: Mapping[str, Shape],
    shapes: Mapping[str, Shape],
    places: list[Axis],
    most: int,
) -> Iterator[int]:
    """Lengths that the graph takes, from the least on, each twice the last."""
    length = 1
    while length < most:
        asked = _with(shapes, places, length)
        if not misfit(proto, {**given, **asked}):  # type: ignore[dict-item]
            yield length
        length *= 2


def _with(shapes: Mapping[str, Shape], places: list[Axis], size: int | Span) -> Asked:
    """Shapes with another size in some places."""
    axes = {(axis.value.name, axis.at) for axis in places}
    return {
        name: tuple(size if (name, at) in axes else n for at, n in enumerate(shape))
        for name, shape in shapes.items()
    }
