"""Sizes for what a model's inputs leave open, as its user would want them.

A batch is 1, text has 128 tokens, sound is a second at 16 kHz, images are as large as the file's
metadata says. Axes with the same name have the same size, and a name such as `past + 1` is
computed. A graph may reject a size, for example one with a table of 77 positions, so there are
several proposals, the likeliest first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from onnx import ModelProto, ValueInfoProto

from .bind import declared_shape, model_inputs
from .size_names import SizeName
from .usual_sizes import Sizes, Usual, is_list, is_of_batch, is_of_image, is_of_time

Shape = tuple[int, ...]
_OF_NO_RANK = (1, 3, 224, 224)


class Axis(NamedTuple):
    """An open axis of an input. name: the one in the file, or one that no other axis has."""

    value: ValueInfoProto
    at: int
    name: str


def open_axes(proto: ModelProto) -> list[Axis]:
    """Every axis of an input that has no size."""
    return [
        Axis(value, at, _name(value, at, size))
        for value in model_inputs(proto)
        for at, size in enumerate(declared_shape(value) or ())
        if isinstance(size, str)
    ]


def is_length(axis: Axis, axes: Sequence[Axis]) -> bool:
    """Whether an axis may be a length: not the first, or with a name for time, or the only one.

    axes: all open axes. An only axis is a batch if another input has an axis of the same name. The
    first axis is one for a list beside inputs that share a batch.
    """
    firsts = [other.name for other in axes if not other.at]
    if axis.at or is_of_time(axis.name) or is_list(declared_shape(axis.value) or (), firsts):
        return True
    others = {other.name for other in axes if other.value.name != axis.value.name}
    alone = len(declared_shape(axis.value) or ()) == 1
    return alone and axis.name not in others and not is_of_batch(axis.name)


def proposals(proto: ModelProto, given: Mapping[str, Shape]) -> Iterator[dict[str, Shape]]:
    """Shapes for the open inputs that the user gave no shape; each proposal has other sizes.

    given: the shapes that the user gave; the proposals are consistent with them.
    """
    axes = open_axes(proto)
    usual = Usual(proto, {axis.name for axis in axes})
    fixed = {a.name: given[a.value.name][a.at] for a in axes if a.value.name in given}
    wanted = [(a, usual.sizes(a.value, a.at, a.name)) for a in axes if a.value.name not in given]
    for now in _turns(wanted):
        yield _shapes(proto, given, _sized(now, fixed, axes))


def _turns(wanted: Sequence[tuple[Axis, Sizes]]) -> Iterator[list[tuple[Axis, int]]]:
    """A size for each axis at a time; texts change first, with the images beside unchanged.

    The last turn has the least sizes, since the others never have those of two axes together.
    """
    images = [is_of_image(axis.value) and not is_of_time(axis.name) for axis, _ in wanted]
    for turn in range(max((len(sizes) for _, sizes in wanted), default=1)):
        now = [(axis, sizes[min(turn, len(sizes) - 1)]) for axis, sizes in wanted]
        if turn and any(images) and not all(images):
            both = zip(images, wanted, now, strict=True)
            yield [(one[0], one[1][0]) if image else other for image, one, other in both]
        yield now
    if len({sizes for _, sizes in wanted}) > 1 and not any(images):
        yield [(axis, min(sizes)) for axis, sizes in wanted]


def _sized(
    wanted: Iterable[tuple[Axis, int]], fixed: Mapping[str, int], axes: Iterable[Axis]
) -> dict[str, int]:
    """A size for each name: plain names get theirs first, then sums follow."""
    names = {axis.name for axis in axes}
    read = [(SizeName(axis.name, names), axis.name, size) for axis, size in wanted]
    sizes = dict(fixed)
    for one, name, size in sorted(read, key=lambda row: (row[0].is_sum, len(row[0].terms))):
        for term in sorted(one.terms - sizes.keys()):
            sizes[term] = one.solved(term, size, dict.fromkeys(one.terms, 1) | sizes)
        sizes.setdefault(name, one.value(sizes))
    return sizes


def _shapes(
    proto: ModelProto, given: Mapping[str, Shape], sizes: Mapping[str, int]
) -> dict[str, Shape]:
    free = [value for value in model_inputs(proto) if value.name not in given]
    shapes = {value.name: _filled(value, sizes) for value in free}
    return {v.name: shapes[v.name] for v in free if shapes[v.name] != declared_shape(v)}


def _filled(value: ValueInfoProto, sizes: Mapping[str, int]) -> Shape:
    if (declared := declared_shape(value)) is None:
        return _OF_NO_RANK
    return tuple(
        size if isinstance(size, int) else sizes[_name(value, at, size)]
        for at, size in enumerate(declared)
    )


def _name(value: ValueInfoProto, at: int, size: str) -> str:
    return f"{value.name}[{at}]" if size == "?" else size
