"""Sizes that a build assumes where a file leaves them open and the user gave none.

A batch is 1. A length is a range, up to the size of a table of positions, or else up to a usual
length. Images may have any size from half of the usual one up, in steps, where the graph takes
that. `caches.py` assumes the rows of caches. All other open sizes have to be given by the user.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import permutations
from math import isqrt

from onnx import ModelProto

from .axes import scaled, size_at, with_size
from .batches import Asked, Span, span_of, with_rows
from .caches import found_caches
from .misfit import Trials, longest
from .onnx.bind import declared_shape
from .onnx.size_names import SizeName
from .onnx.sizes import Axis, is_length, open_axes, proposals
from .onnx.usual_sizes import colours_at, is_of_batch, is_of_image, is_of_time
from .proportions import in_proportion
from .sides import OF_IMAGES, STEPS, any_size, is_height, is_side, other_sides
from .together import together

Shape = tuple[int, ...]
_BYTES = 4  # of an element
_MOST = 1 << 26  # elements of the largest tensor that is accepted while other sizes need fewer


def assumed(trials: Trials, given: Asked) -> Asked:
    """Shapes for the open inputs that `given` leaves out; none where no choice is clear.

    Where a range was given, the axes of the same name get it as well.
    """
    proto = trials.proto
    axes = [axis for axis in open_axes(proto) if axis.value.name not in given]
    if not axes or next(found_caches(proto), None):
        return {}
    span = span_of(given)
    fixed = with_rows(given, span.most if span else 0)
    if not (fitting := _proposals(trials, fixed)):
        return {}
    known = _names(proto, given)
    lengths = [axis for axis in axes if _is_free(axis, fitting[0])]
    lengths = [axis for axis in lengths if not isinstance(known.get(axis.name), int)]
    names = {axis.name for axis in lengths}
    if any(SizeName(name, names).is_sum for name in names):
        return {}
    if any(not (is_length(axis, axes) or is_side(axis, fitting[0])) for axis in lengths):
        return {}
    if span:
        return with_size(fitting[0], lengths, span) if {*map(known.get, names)} == {span} else {}
    return _opened(trials, fixed, fitting, lengths)


def _proposals(trials: Trials, given: Mapping[str, Shape]) -> list[dict[str, Shape]]:
    """The proposed shapes that fit; those with a huge tensor only where no others fit.

    Attention between the pixels of a large image makes a tensor with the square of their number.
    For images, one fitting shape is enough; for lengths, larger ones are needed to see how far they
    go: the largest are tried next.
    """
    usual, huge = list[dict[str, Shape]](), list[dict[str, Shape]]()
    axes = [axis for axis in open_axes(trials.proto) if axis.value.name not in given]
    left = list(proposals(trials.proto, given))
    while left:
        one = left.pop(0)
        if any(_covers(fitting, one) for fitting in usual):
            continue
        why, largest = trials.tried({**given, **one})
        if largest > _MOST:
            huge.append(one)
        elif not why:
            usual.append(one)
            left.sort(key=lambda one: -sum(map(sum, one.values())))
        if usual and all(is_side(axis, one) for axis in axes if _is_free(axis, one)):
            break
    if huge and not usual:
        usual = [*_smaller(trials, given, axes, huge[-1])]
        usual = usual or [one for one in huge if not trials.misfit({**given, **one})]
    return usual or [*_exported(trials, given)] or [*_proportional(trials, given)]


def _smaller(
    trials: Trials, given: Mapping[str, Shape], axes: Sequence[Axis], shapes: Mapping[str, Shape]
) -> Iterator[dict[str, Shape]]:
    """The shapes with the next powers of two as sides of images, without a huge tensor."""
    sides = [axis for axis in axes if is_side(axis, shapes)]
    while sides and min(size_at(shapes, axis) for axis in sides) > STEPS[0]:
        for axis in sides:
            half = 1 << (size_at(shapes, axis) - 1).bit_length() - 1
            shapes = with_size(shapes, [axis], half)  # type: ignore[assignment]
        why, largest = trials.tried({**given, **shapes})
        if not why and largest <= _MOST:
            yield dict(shapes)
            return


def too_large(trials: Trials, given: Asked) -> str:
    """Why no usual size was assumed, if each makes a huge tensor; else ""."""
    fixed, least, named = with_rows(given, 0), 0, ""
    for shapes in proposals(trials.proto, fixed):
        why, largest = trials.tried({**fixed, **shapes})
        if not why and largest <= _MOST:
            return ""
        if _MOST < largest < (least or largest + 1):
            least, named = largest, ", ".join(f"{n}={_text(one)}" for n, one in shapes.items())
    return f"with {named} one tensor would have {least * _BYTES / 1e9:.1f} GB" if least else ""


def _text(shape: Shape) -> str:
    return ",".join(map(str, shape))


def _covers(shapes: Mapping[str, Shape], others: Mapping[str, Shape]) -> bool:
    """Whether no size of the others is larger."""
    pairs = (zip(shapes[name], shape, strict=True) for name, shape in others.items())
    return all(other <= size for pair in pairs for size, other in pair)


def _exported(trials: Trials, given: Mapping[str, Shape]) -> Iterator[dict[str, Shape]]:
    """The shapes that the graph was exported with, if a node holds that length and it fits."""
    first: Asked = dict(next(proposals(trials.proto, given), {}))
    axes = [axis for axis in open_axes(trials.proto) if axis.value.name in first]
    free = [axis for axis in axes if _is_free(axis, first)] or axes
    lengths = [axis for axis in free if size_at(first, axis) > 1] or free  # no batch of a state
    _, sizes = trials.clash({**given, **first})  # type: ignore[dict-item]
    tried_with = {size_at(first, axis) for axis in lengths if is_side(axis, first)}
    for size in dict.fromkeys((*sizes, *_sides(sizes, tried_with))):
        found = with_size(first, lengths, size)
        if size > 1 and not trials.misfit({**given, **found}):  # type: ignore[dict-item]
            yield found  # type: ignore[misc]
            return


def _proportional(trials: Trials, given: Mapping[str, Shape]) -> Iterator[dict[str, Shape]]:
    """Shapes in which the sizes of some inputs are multiples of others', if such ones fit."""
    first = next(proposals(trials.proto, given), {})
    places: dict[str, list[int]] = {}
    for axis in open_axes(trials.proto):
        if axis.value.name in first and _is_free(axis, first):
            places.setdefault(axis.value.name, []).append(axis.at)
    yield from in_proportion(trials, given, first, places)


def _sides(sizes: Sequence[int], side: Collection[int]) -> Iterator[int]:
    """Sides of square images, if both sizes count patches of them. side: the one that was tried.

    Images of 640 have 400 patches (20 x 20), so those with 16 patches (4 x 4) are of 128.
    """
    if len(sizes) == 2 and len(side) == 1:
        (one,) = side
        for places, other in permutations(map(isqrt, sizes)):
            if places and not one * other % places:
                yield one * other // places


def _opened(
    trials: Trials, given: Mapping[str, Shape], fitting: Sequence[Asked], lengths: list[Axis]
) -> Asked:
    """The first shapes that fit, with ranges for the sides of images and for each named length.

    given: the shapes of the other inputs.
    """
    of_images = {axis.name for axis in lengths if is_side(axis, fitting[0])}
    sides = [axis for axis in lengths if axis.name in of_images]  # of a mask for the images, too
    made: Asked = {**fitting[0], **any_size(trials, given, fitting[0], sides)}
    others = [axis for axis in lengths if axis not in sides and not is_height(axis, fitting[0])]
    largest = fitting[0]
    for places in _together(trials, given, fitting[0], others):
        most = _most(trials, given, fitting, largest, places)
        largest = scaled(largest, places, most)
        least = _least(trials, given, fitting[0], places, most)
        step = next(_steps(trials, given, fitting[0], places, most), most)
        if (first := max(least, step)) < most:
            made = scaled(made, places, Span(first, most, step))
    return made


def _together(
    trials: Trials, given: Mapping[str, Shape], shapes: Asked, axes: Sequence[Axis]
) -> list[list[Axis]]:
    """The axes in groups that change together.

    They have one name, or one size, or sizes that are multiples of the smallest, which comes first.
    """
    groups = list[list[str]]()
    sizes = {axis.name: size_at(shapes, axis) for axis in axes}

    def fits(names: Sequence[str]) -> bool:
        places = [axis for axis in axes if axis.name in names]
        asked = scaled(shapes, places, min(sizes[name] for name in names) // 2)
        return not trials.misfit({**given, **asked})  # type: ignore[dict-item]

    for size in dict.fromkeys(sizes.values()):
        alike = [name for name in sizes if sizes[name] == size]
        found, left = together(alike, fits) if len(alike) > 1 and size > 1 else ([], alike)
        groups += found
        groups += [left] if len(left) > 1 and fits(left) else [[name] for name in left]
    if stuck := _multiples(groups, sizes, fits):
        groups = [names for names in groups if names[0] not in stuck] + [stuck]
    ordered = sorted(groups, key=lambda names: names[0])
    each = [[axis for axis in axes if axis.name in names] for names in ordered]
    return [sorted(places, key=lambda axis: sizes[axis.name]) for places in each]


def _multiples(
    groups: Sequence[Sequence[str]],
    sizes: Mapping[str, int],
    fits: Callable[[Sequence[str]], bool],
) -> list[str]:
    """The names of which the graph takes no other size alone, if it does of all together.

    Empty if they have one size, or one that is no multiple of the smallest.
    """
    if len({size for size in sizes.values() if size > 1}) < 2:
        return []
    stuck = [name for names in groups if not fits(names) for name in names if sizes[name] > 1]
    least = min(map(sizes.__getitem__, stuck), default=1)
    differ = len({sizes[name] for name in stuck}) > 1
    whole = not any(sizes[name] % least for name in stuck)
    return stuck if differ and whole and fits(stuck) else []


def _most(
    trials: Trials,
    given: Mapping[str, Shape],
    fitting: Sequence[Asked],
    others: Asked,
    places: list[Axis],
) -> int:
    """The longest proposed length that fits, or a longer one where the next proposal is far beyond.

    A table of positions may have rows that are never read, such as the first two. Beyond what was
    proposed no tensor becomes huge, also by several lengths together. others: shapes with the other
    lengths as long as they are so far.
    """
    sizes = sorted({size_at(shapes, places[0]) for shapes in proposals(trials.proto, given)})
    fits = max(size_at(shapes, places[0]) for shapes in fitting)
    beyond = next((size for size in sizes if size > 2 * fits), fits)

    def fault(size: int) -> bool:
        asked = scaled(others, places, size)
        why, elements = trials.tried({**given, **asked})  # type: ignore[dict-item]
        return bool(why) or elements > _MOST

    # What was proposed was tried, unless there are several lengths: this costs nothing.
    faulty = next((size for size in sizes if fits < size <= beyond and fault(size)), None)
    return longest(fits, faulty, fault) if faulty else beyond


def one_size(trials: Trials, given: Asked, found: Asked) -> str:
    """Why the graph takes no other size, where one was assumed for a length or images; else "".

    found: the assumed shapes. Tried are those that `any_size` tries, and half of a length.
    """
    known = {name: _most_of(shape) for name, shape in {**given, **found}.items()}
    axes = [axis for axis in open_axes(trials.proto) if axis.value.name in found]
    axes = [a for a in axes if _is_free(a, found) and not _is_span(found[a.value.name][a.at])]
    sides = [axis for axis in axes if is_side(axis, found)]
    least = min((size_at(known, axis) for axis in sides), default=0)
    step = STEPS[0] if least >= 2 * STEPS[0] else 2
    others = other_sides(known, sides, [step] * len(sides)) if sides else []
    for axis in axes:
        if axis not in sides and (size := size_at(known, axis)) > 1:
            others.append(with_size(known, [axis], size // 2))
    return next(filter(None, map(trials.misfit, others)), "")  # type: ignore[arg-type]


def _most_of(shape: Sequence[int | Span]) -> Shape:
    return tuple(size.most if isinstance(size, Span) else size for size in shape)


def _is_span(size: int | Span) -> bool:
    return isinstance(size, Span)


def _is_free(axis: Axis, shapes: Asked) -> bool:
    return not (_is_batch(axis, shapes) or _is_channels(axis))


def _is_channels(axis: Axis) -> bool:
    """Whether the axis is that of the colours or channels of images."""
    shape = declared_shape(axis.value) or ()
    pictured = len(shape) >= OF_IMAGES and is_of_image(axis.value)
    return pictured and axis.at == colours_at(shape) and not is_of_time(axis.name)


def _names(proto: ModelProto, given: Asked) -> dict[str, int | Span]:
    """The sizes or ranges that were given for open axes, by the names of the axes."""
    axes = (axis for axis in open_axes(proto) if axis.value.name in given)
    return {axis.name: given[axis.value.name][axis.at] for axis in axes}


def _is_batch(axis: Axis, shapes: Asked) -> bool:
    size, one_image = shapes[axis.value.name][axis.at], is_side(axis, shapes)
    return is_of_batch(axis.name) or (size == 1 and axis.at == 0 and not one_image)


def _least(
    trials: Trials, given: Mapping[str, Shape], shapes: Asked, places: list[Axis], most: int
) -> int:
    """The least power of two that the graph takes as a length, or `most` if it takes none."""

    def fits(doubled: int) -> bool:
        asked = scaled(shapes, places, 1 << doubled)
        return not trials.misfit({**given, **asked})  # type: ignore[dict-item]

    return 1 if fits(0) else min(most, 2 << longest(0, (most - 1).bit_length(), fits))


def _steps(
    trials: Trials, given: Mapping[str, Shape], shapes: Asked, places: list[Axis], most: int
) -> Iterator[int]:
    """Steps between lengths that the graph takes, smallest first: networks often halve data."""
    step = 1
    while step < most and not most % step:
        asked = scaled(shapes, places, most - step)
        if not trials.misfit({**given, **asked}):  # type: ignore[dict-item]
            yield step
        step *= 2
