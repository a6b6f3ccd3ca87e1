"""Places of an image of which a run decides how many lines and columns count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._tvm import tirx
from .bound import Bound

Numbers = Mapping[Any, Any]  # of each variable, its place among them, and its expression


@dataclass(frozen=True)
class Places:
    """The places of an image, how many of its lines and columns count. height, width: its room."""

    height: int
    width: int
    lines: Bound
    columns: Bound

    def or_more(self, other: Places) -> Places:
        """The larger of two, which are of the same image."""
        lines, columns = self.lines.or_more(other.lines), self.columns.or_more(other.columns)
        return Places(self.height, self.width, lines, columns)

    def expression(self, numbers: Numbers) -> Any:
        """How many count."""
        lines, columns = self._sizes(numbers)
        return lines * columns

    def of(self, row: Any, numbers: Numbers) -> tuple[Any, Any]:
        """The line and the column of a row by its number among those that count."""
        lines, columns = self._sizes(numbers)
        last = tirx.Min(row, lines * columns - 1)
        return tirx.Div(last, columns), tirx.Mod(last, columns)

    def number(self, place: Any, numbers: Numbers) -> tuple[Any, Any]:
        """The number of a place among those that count, and whether it does."""
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


# Of the axes of a block, and by what they are taken modulo, 0 where they are not.
Ends = Mapping[tuple[Any, int], Bound | Places]
