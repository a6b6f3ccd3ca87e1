"""What --input-shape may say: a shape, several in steps, or a range of batches or lengths."""

import re
from collections.abc import Sequence

import click

from ..errors import UsageError
from ..model.batches import Span
from ..request import Shapes

Extent = int | range | Span  # a size, several in equal steps, or a range
Fail = click.BadParameter
InputShapes = Sequence[tuple[str, tuple[Extent, ...]]]  # of inputs by name


def parse_shape(text: str) -> tuple[str, tuple[Extent, ...]]:
    """The input and the shape of "data=1,3,224,224".

    Or of "data=1..8,3,224,224", "ids=1,1..512", and of "data=1,3,320..640:32,320..640:32".
    """
    name, _, numbers = text.rpartition("=")
    extents = tuple(_extent(size.strip()) for size in numbers.split(","))
    if not name or not all(extents):
        raise Fail(f"{text!r} is not an input's shape; write it like data=1,3,224,224")
    if len({len(one) for one in extents if isinstance(one, range)}) > 1:
        raise Fail(f"{text!r}: its axes change together, and need equally many sizes")
    return name, extents


def _extent(text: str) -> Extent:
    """The size, or the sizes, of "224", "1..8" or "320..640:32"; 0 if it is none of these."""
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    if not (found := re.fullmatch(r"([0-9]+)\.\.([0-9]+)(?::([0-9]+))?", text)):
        return 0
    least, most, step = int(found[1]), int(found[2]), int(found[3] or 1)
    if not (0 < least < most and step and (most - least) % step == 0):
        raise Fail(f"{text!r} is no range of sizes: it goes up, in steps that meet its end")
    return range(least, most + 1, step) if found[3] else Span(least, most)


def shape_text(name: str, shape: Sequence[Extent]) -> str:
    """A shape as `parse_shape` reads it."""
    sizes = (f"{n[0]}..{n[-1]}:{n.step}" if isinstance(n, range) else str(n) for n in shape)
    return f"{name}={','.join(sizes)}"


def shapes_together(named: InputShapes) -> tuple[Shapes, ...]:
    """The shapes that a library is to take: the n-th of each input together.

    An input with one shape has it in all.

    Raises:
        UsageError: inputs have other numbers of shapes, or the same shapes are given twice.
    """
    of_input: dict[str, list[tuple[int | Span, ...]]] = {}
    for name, shape in named:
        of_input.setdefault(name, []).extend(_each(shape))
    count = max(map(len, of_input.values()), default=1)
    if any(len(shapes) not in (1, count) for shapes in of_input.values()):
        numbers = ", ".join(f"{len(shapes)} for {name}" for name, shapes in of_input.items())
        hint = "give each input as many shapes as the others, or one for all"
        raise UsageError(f"--input-shape: shapes do not go together: {numbers}", hint)
    together = [{name: s[at % len(s)] for name, s in of_input.items()} for at in range(count)]
    if any(shapes_of_all in together[:at] for at, shapes_of_all in enumerate(together)):
        raise UsageError("--input-shape: the same shapes are given twice", "leave one out")
    spans = {one for shapes in together for shape in shapes.values() for one in shape}
    if (several := len({one for one in spans if isinstance(one, Span)})) and several + count > 2:
        hint = "give one range, the same for all inputs that have it, and one shape of each"
        raise UsageError("--input-shape: a range goes with no other shapes", hint)
    return tuple(together)


def _each(shape: Sequence[Extent]) -> list[tuple[int | Span, ...]]:
    """The shapes with the n-th sizes of all ranges."""
    count = next((len(one) for one in shape if isinstance(one, range)), 1)
    return [
        tuple(one[at] if isinstance(one, range) else one for one in shape) for at in range(count)
    ]
