"""A range of batch sizes: a run splits its batch into parts, and code exists for a few sizes.

    1..8  ->  code for 1, 2 and 4; a batch of 7 is one of 4, one of 2 and one of 1

Once each weight that is read serves many rows, twice as many rows take nearly twice as long. So
there is code for sizes that double up to 4, and beyond that only while a weight serves few rows. A
part may be filled up with rows that nobody reads, where that costs less than one more part
(`runtime/batches.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ..system.json_types import Count, Name

_SMALL = 4  # code is always made for batches of up to this many rows
_OPERATIONS = 8  # operations that fit into the time of reading one byte of weights
_THOUSANDTHS = 1000  # the unit of `Batch.part`: thousandths of a row
_MOST_PART = 10**9  # the upper limit of `Batch.part`
_LEAST_GAIN = 8  # code for twice as many rows pays if a part costs at least 1/8 of those rows


@dataclass(frozen=True)
class Span:
    """The sizes from `least` to `most`, written `1..8`, or in steps, written `320..640:32`."""

    least: int
    most: int
    step: int = 1

    def __str__(self) -> str:
        return f"{self.least}..{self.most}" + (f":{self.step}" if self.step > 1 else "")

    def times(self, other: Span) -> int | None:
        """How many times this range another one is; None if it is no such multiple."""
        by = other.most // self.most
        return by if by and other == Span(self.least * by, self.most * by, self.step * by) else None

    @classmethod
    def read(cls, text: str) -> Span:
        """The span that a text writes."""
        ends, _, step = text.partition(":")
        least, most = ends.split("..")
        return cls(int(least), int(most), int(step or 1))


@dataclass(frozen=True)
class Value:
    """The value of an input that is the same in every run, given instead of a shape: `=16000`."""

    text: str

    def __str__(self) -> str:
        return f"={self.text}"


_SPAN = r"[0-9]{1,9}\.\.[0-9]{1,9}(:[0-9]{1,9})?"
_Text = Annotated[str, Meta(pattern=rf"^({_SPAN}|=[-+.0-9A-Za-z]{{1,40}})$")]
AskedShape = tuple[Count | _Text, ...]  # the JSON form of a shape or value that a user asks for
Asked = Mapping[str, tuple[int | Span, ...]]  # shapes that a user asks for, by the input's name
Values = Mapping[str, tuple[Value]]  # the values of inputs that are the same in all runs
Given = Mapping[str, tuple[int | Span | Value, ...]]  # shapes and values that a user asks for


def asked(shape: tuple[int | Span | Value, ...]) -> list[int | str]:
    """The JSON form of a shape, or of a value that an input has in all runs."""
    return [one if isinstance(one, int) else str(one) for one in shape]


def read_shape(shape: Iterable[int | str]) -> tuple[int | Span | Value, ...]:
    """The shape or value that its JSON form says."""
    return tuple(one if isinstance(one, int) else _read(one) for one in shape)


def _read(text: str) -> Span | Value:
    return Value(text[1:]) if text.startswith("=") else Span.read(text)


def values_of(given: Given) -> Values:
    """The values that were given for inputs in place of shapes."""
    firsts = {name: shape[0] for name, shape in given.items() if shape}
    return {name: (one,) for name, one in firsts.items() if isinstance(one, Value)}


def shapes_of(given: Given) -> dict[str, tuple[int | Span, ...]]:
    """The shapes that were given for the other inputs."""
    values = values_of(given)
    return {
        name: tuple(one for one in shape if not isinstance(one, Value))
        for name, shape in given.items()
        if name not in values
    }


def span_of(shapes: Asked) -> Span | None:
    """The range of the batch, which is on the first axis of some inputs; None if there is none."""
    return next((one for shape in shapes.values() for one in shape if isinstance(one, Span)), None)


def with_rows(shapes: Asked, rows: int) -> dict[str, tuple[int, ...]]:
    """The shapes with `rows` in the place of the range of the batch."""
    return {
        name: tuple(rows if isinstance(one, Span) else one for one in shape)
        for name, shape in shapes.items()
    }


@dataclass(frozen=True)
class Batch:
    """The batch sizes that a library takes, split into parts that are among its shapes.

    inputs: those with one row for each sample, along their first axis. part: what a part costs
    beside its rows, in thousandths of a row; parts are chosen by it.
    """

    least: Count
    most: Count
    inputs: tuple[Name, ...]
    part: Count

    @classmethod
    def of(cls, span: Span, shapes: Asked, operations: float, weights: int) -> Batch:
        """The batches of shapes with a range.

        operations: in a run of the least batch. weights: in bytes.
        """
        inputs = tuple(name for name, shape in shapes.items() if span in shape)
        row = max(1.0, operations / span.least)
        part = min(_MOST_PART, round(_THOUSANDTHS * _OPERATIONS * weights / row))
        return cls(span.least, span.most, inputs, part)

    def sizes(self) -> Iterator[int]:
        """The sizes that there will be code for, smallest first."""
        size = self.least
        while size <= self.most:
            yield size
            if size >= _SMALL and size * _THOUSANDTHS > _LEAST_GAIN * self.part:
                return
            size *= 2
