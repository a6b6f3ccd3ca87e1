"""A range of batches: any size of it is run in parts, and for a few sizes there is code.

    1..8  ->  code for 1, 2 and 4; a batch of 7 is one of 4, one of 2 and one of 1

Twice as many rows take nearly twice as long, once each weight that is read serves many of them. So
the sizes double up to 4, and on as long as a weight serves few. Between two of them, a part may be
filled up with rows that nobody reads, where that costs less than one more part does
(`runtime/batches.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ..system.json_types import Count, Name

_SMALL = 4  # rows that code is always made for
_OPERATIONS = 8  # for which there is time while a byte of weights is read
_THOUSANDTHS = 1000  # of a row
_MOST_PART = 10**9  # of these
_LEAST_GAIN = 8  # code for twice as many rows pays if a part costs an eighth of these


@dataclass(frozen=True)
class Span:
    """Sizes from the least to the most, as `1..8`, or in steps, as `320..640:32`."""

    least: int
    most: int
    step: int = 1

    def __str__(self) -> str:
        return f"{self.least}..{self.most}" + (f":{self.step}" if self.step > 1 else "")

    @classmethod
    def read(cls, text: str) -> Span:
        """A span of its text."""
        ends, _, step = text.partition(":")
        least, most = ends.split("..")
        return cls(int(least), int(most), int(step or 1))


@dataclass(frozen=True)
class Value:
    """A number that an input is in every run, in the place of its shape: `=16000`, `=true`."""

    text: str

    def __str__(self) -> str:
        return f"={self.text}"


_SPAN = r"[0-9]{1,9}\.\.[0-9]{1,9}(:[0-9]{1,9})?"
_Text = Annotated[str, Meta(pattern=rf"^({_SPAN}|=[-+.0-9A-Za-z]{{1,40}})$")]
AskedShape = tuple[Count | _Text, ...]  # as JSON has one that is asked for
Asked = Mapping[str, tuple[int | Span, ...]]  # shapes of inputs by name, as they are asked for
Values = Mapping[str, tuple[Value]]  # numbers that inputs are in all runs
Given = Mapping[str, tuple[int | Span | Value, ...]]  # the same, with numbers that inputs are


def asked(shape: tuple[int | Span | Value, ...]) -> list[int | str]:
    """A shape, or a number, as JSON has it."""
    return [one if isinstance(one, int) else str(one) for one in shape]


def read_shape(shape: Iterable[int | str]) -> tuple[int | Span | Value, ...]:
    """A shape, or a number, of JSON."""
    return tuple(one if isinstance(one, int) else _read(one) for one in shape)


def _read(text: str) -> Span | Value:
    return Value(text[1:]) if text.startswith("=") else Span.read(text)


def values_of(given: Given) -> Values:
    """The numbers that inputs are, as they were given."""
    firsts = {name: shape[0] for name, shape in given.items() if shape}
    return {name: (one,) for name, one in firsts.items() if isinstance(one, Value)}


def shapes_of(given: Given) -> dict[str, tuple[int | Span, ...]]:
    """The shapes of the other inputs."""
    values = values_of(given)
    return {
        name: tuple(one for one in shape if not isinstance(one, Value))
        for name, shape in given.items()
        if name not in values
    }


def span_of(shapes: Asked) -> Span | None:
    """The range of the batch, on the first axis of some inputs; None where there is none."""
    return next((one for shape in shapes.values() for one in shape if isinstance(one, Span)), None)


def with_rows(shapes: Asked, rows: int) -> dict[str, tuple[int, ...]]:
    """The shapes with a batch of so many rows, where it is a range."""
    return {
        name: tuple(rows if isinstance(one, Span) else one for one in shape)
        for name, shape in shapes.items()
    }


@dataclass(frozen=True)
class Batch:
    """The batches that a library takes, in parts that are its shapes.

    inputs: those with a row for each of the batch along their first axis. part: what a part costs
    beside its rows, in thousandths of a row: by this, parts are chosen.
    """

    least: Count
    most: Count
    inputs: tuple[Name, ...]
    part: Count

    @classmethod
    def of(cls, span: Span, shapes: Asked, operations: float, weights: int) -> Batch:
        """Of shapes with a range. operations: of a run with the least batch. weights: in bytes."""
        inputs = tuple(name for name, shape in shapes.items() if span in shape)
        row = max(1.0, operations / span.least)
        part = min(_MOST_PART, round(_THOUSANDTHS * _OPERATIONS * weights / row))
        return cls(span.least, span.most, inputs, part)

    def sizes(self) -> Iterator[int]:
        """The sizes that there is to be code for, from the least."""
        size = self.least
        while size <= self.most:
            yield size
            if size >= _SMALL and size * _THOUSANDTHS > _LEAST_GAIN * self.part:
                return
            size *= 2
