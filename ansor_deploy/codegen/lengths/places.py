"""The pixels of an image that count, where a run decides how many lines and columns do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._tvm import tirx
from .bound import Bound

Numbers = Mapping[Any, Any]  # each variable's position among them, and its expression


@dataclass(frozen=True)
class Places:
    """How many lines and columns of an image count. height, width: the most it has room for.

    lines: None where all count.
    """

    height: int
    width: int
    lines: Bound | None
    columns: Bound

    @property
    def bounds(self) -> list[Bound]:
        """The bounds of lines, if any, and of columns."""
        return [*([self.lines] if self.lines else []), self.columns]

    def or_more(self, other: Places) -> Places:
        """The larger of two parts of the same image."""
        lines = self.lines.or_more(other.lines) if self.lines and other.lines else None
        return Places(self.height, self.width, lines, self.columns.or_more(other.columns))

    def pitch(self, numbers: Numbers) -> Any:
        """How many pixels of a line count."""
        return self._sizes(numbers)[1]

    def expression(self, numbers: Numbers) -> Any:
        """How many pixels count."""
        lines, columns = self._sizes(numbers)
        return lines * columns

    def of(self, row: Any, numbers: Numbers) -> tuple[Any, Any]:
        """The line and the column of the pixel with this number among those that count."""
        lines, columns = self._sizes(numbers)
        last = tirx.Min(row, lines * columns - 1)
        return tirx.Div(last, columns), tirx.Mod(last, columns)

    def slot(self, line: Any, column: Any, numbers: Numbers, *, stored: bool) -> Any:
        """A pixel's number among those that count; where others are stored, the last of all."""
        lines, columns = self._sizes(numbers)
        number = line * columns + column
        counts = tirx.And(line < lines, column < columns)
        last = tirx.const(self.height * self.width - 1, str(number.ty.dtype))
        return tirx.Select(counts, number, last) if stored else number

    def _sizes(self, numbers: Numbers) -> tuple[Any, Any]:
        bounds = (self.lines, self.height), (self.columns, self.width)
        lines, columns = (_within(*pair, numbers) for pair in bounds)
        return lines, columns


def _within(bound: Bound | None, room: int, numbers: Numbers) -> Any:
    """A number from 1 to the room; the room where there is no bound."""
    one, most = (tirx.const(n, "int64") for n in (1, room))
    return tirx.Max(tirx.Min(bound.expression(numbers), most), one) if bound else most


# Upper limits of a block's axes, as `asked.Limits`, where the limit of packed rows is `Places`.
Ends = Mapping[tuple[Any, int], Bound | Places]
