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
    """How many lines and columns of an image count. height, width: the most it has room for."""

    height: int
    width: int
    lines: Bound
    columns: Bound

    def or_more(self, other: Places) -> Places:
        """The larger of two parts of the same image."""
        lines, columns = self.lines.or_more(other.lines), self.columns.or_more(other.columns)
        return Places(self.height, self.width, lines, columns)

    def expression(self, numbers: Numbers) -> Any:
        """How many pixels count."""
        lines, columns = self._sizes(numbers)
        return lines * columns

    def of(self, row: Any, numbers: Numbers) -> tuple[Any, Any]:
        """The line and the column of the pixel with this number among those that count."""
        lines, columns = self._sizes(numbers)
        last = tirx.Min(row, lines * columns - 1)
        return tirx.Div(last, columns), tirx.Mod(last, columns)

    def number(self, place: Any, numbers: Numbers) -> tuple[Any, Any]:
        """A pixel's number among those that count, and whether it counts."""
        line, column = place // self.width, place % self.width
        lines, columns = self._sizes(numbers)
        return line * columns + column, tirx.And(line < lines, column < columns)

    def _sizes(self, numbers: Numbers) -> tuple[Any, Any]:
        one, *rooms = (tirx.const(n, "int64") for n in (1, self.height, self.width))
        found = (bound.expression(numbers) for bound in (self.lines, self.columns))
        lines, columns = (
            tirx.Max(tirx.Min(n, room), one) for n, room in zip(found, rooms, strict=True)
        )
        return lines, columns


# Upper limits of a block's axes, as `asked.Limits`, where the limit of packed rows is `Places`.
Ends = Mapping[tuple[Any, int], Bound | Places]
