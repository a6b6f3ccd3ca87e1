"""The values of --input-shape: a shape, ranges of batches, lengths and images, or a constant."""

import re
from collections.abc import Sequence

import click

from ..errors import UsageError
from ..model.batches import Span, Value
from ..request import Shapes

Extent = int | Span | Value  # one size, a range of sizes, or the value of a constant input
Fail = click.BadParameter
InputShapes = Sequence[tuple[str, tuple[Extent, ...]]]  # pairs of an input's name and a shape


def parse_shape(text: str) -> tuple[str, tuple[Extent, ...]]:
    """The input's name and the shape of "data=1,3,224,224".

    The text may also hold ranges, as in "data=1..8,3,224,224", "ids=1,1..512" and
    "data=1,3,320..640:32,320..640:32", or the value of a constant input, as in "sr==16000".
    """
    name, _, numbers = text.rpartition("=")
    if name[:-1] and name.endswith("="):
        return name[:-1], (_value(numbers),)
    extents = tuple(_extent(size.strip()) for size in numbers.split(","))
    if not name or not all(extents):
        raise Fail(f"{text!r} is not an input's shape; write it like data=1,3,224,224")
    return name, extents


def _value(text: str) -> Value:
    if not re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?|true|false", text.strip(), re.IGNORECASE):
        raise Fail(f"{text!r} is not a number, true or false, which an input may always be")
    return Value(text.strip())


def _extent(text: str) -> int | Span:
    """The size or range that "224", "1..8" or "320..640:32" means; 0 if it is none of these."""
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    if not (found := re.fullmatch(r"([0-9]+)\.\.([0-9]+)(?::([0-9]+))?", text)):
        return 0
    least, most, step = int(found[1]), int(found[2]), int(found[3] or 1)
    if not (0 < least < most and step and (most - least) % step == 0):
        raise Fail(f"{text!r} is no range of sizes: it goes up, in steps that meet its end")
    return Span(least, most, step)


def shape_text(name: str, shape: Sequence[Extent]) -> str:
    """A shape in the form that `parse_shape` reads."""
    return f"{name}={','.join(map(str, shape))}"


def shapes_together(named: InputShapes) -> tuple[Shapes, ...]:
    """The sets of shapes that a library is to take: the n-th set has the n-th shape of each input.

    An input with one shape has it in every set. UsageError where the numbers of shapes differ
    otherwise, the same set is given twice, or a range comes with other shapes.
    """
    of_input: dict[str, list[tuple[Extent, ...]]] = {}
    for name, shape in named:
        of_input.setdefault(name, []).extend(_each(shape))
    count = max(map(len, of_input.values()), default=1)
    if any(len(shapes) not in (1, count) for shapes in of_input.values()):
        numbers = ", ".join(f"{len(shapes)} for {name}" for name, shapes in of_input.items())
        hint = "give each input as many shapes as the others, or one for all"
        raise UsageError(
            f"--input-shape: the inputs have different numbers of shapes: {numbers}", hint
        )
    together = [{name: s[at % len(s)] for name, s in of_input.items()} for at in range(count)]
    if any(shapes_of_all in together[:at] for at, shapes_of_all in enumerate(together)):
        raise UsageError("--input-shape: the same shapes are given twice", "leave one out")
    rows = [shape for shapes in together for shape in shapes.values()]
    batches = {shape[0] for shape in rows if isinstance(shape[0], Span)}
    lengths = {size for shape in rows for size in shape[1:] if isinstance(size, Span)}
    if (count > 1 and batches | lengths) or (len(batches) > 1 and not lengths):
        hint = "give one range, the same for all inputs that have it, and one shape of each"
        raise UsageError("--input-shape: a range goes with no other shapes", hint)
    return tuple(together)


def _each(shape: Sequence[Extent]) -> list[tuple[Extent, ...]]:
    """The shape itself; for a range of batches in steps, one shape for each batch."""
    first, *others = shape
    if not isinstance(first, Span) or first.step == 1 or any(isinstance(n, Span) for n in others):
        return [tuple(shape)]
    return [(n, *others) for n in range(first.least, first.most + 1, first.step)]
