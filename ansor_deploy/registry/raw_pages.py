"""Read rows page by page from a SQLite file that SQLite itself can no longer read.

Every page is read, whatever damaged pages say about it, so only rows on damaged pages are lost.
The format: https://www.sqlite.org/fileformat2.html
"""

import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

MAGIC = b"SQLite format 3\0"
SIZES = tuple(1 << bits for bits in range(9, 17))  # possible sizes of a page, in bytes

_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER = 0x0D, 0x0A, 0x02
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

# For how many rows an overflow page is read: it belongs to one, but damaged rows may claim it too.
_MOST_ROWS = 8

Value = int | float | str | bytes | None
# The rowid, None in an index or in a table without rowids; and the values.
Row = tuple[int | None, tuple[Value, ...]]


class Bytes(Protocol):
    """Anything whose bytes can be read by slices."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes: ...


class Pages:
    """The pages of a file's bytes."""

    def __init__(self, data: Bytes, size: int) -> None:
        self.size = size
        self._data = data
        self._count = -(-len(data) // size)
        self._followed: Counter[int] = Counter()  # how often an overflow page was read

    def rows(self) -> Iterator[Row]:
        """Every row of every page that has any."""
        for number in range(1, self._count + 1):
            yield from self._rows_of(number)

    def _page(self, number: int) -> bytes:
        if not 0 < number <= self._count:
            raise IndexError(number)
        return self._data[(number - 1) * self.size : number * self.size]

    def _rows_of(self, number: int) -> Iterator[Row]:
        page = self._page(number)
        start = 100 if number == 1 else 0  # after the file's header
        if len(page) < start + 12 or page[start] not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER):
            return
        inner = page[start] == _INDEX_INNER
        (count,) = struct.unpack_from(">H", page, start + 3)
        first = start + (12 if inner else 8)
        for place in range(first, min(first + 2 * count, len(page) - 1), 2):
            with suppress(IndexError, ValueError, struct.error):  # skip a damaged row
                (cell,) = struct.unpack_from(">H", page, place)
                yield self._row(page, cell + 4 * inner, index=page[start] != _TABLE_LEAF)

    def _row(self, page: bytes, at: int, *, index: bool) -> Row:
        length, at = _varint(page, at)
        number = None
        if not index:
            number, at = _varint(page, at)
        return number, _values(self._payload(page, at, length, index=index))

    def _payload(self, page: bytes, at: int, length: int, *, index: bool) -> bytes:
        """A cell's bytes, including those on overflow pages."""
        if length > len(self._data):
            raise ValueError("longer than the file")
        most = (self.size - 12) * 64 // 255 - 23 if index else self.size - 35
        if length <= most:
            return _exactly(page[at : at + length], length)
        least = (self.size - 12) * 32 // 255 - 23
        here = least + (length - least) % (self.size - 4)
        here = here if here <= most else least
        parts, left = [page[at : at + here]], length - here
        (more,) = struct.unpack_from(">I", page, at + here)
        while left > 0:
            self._followed[more] += 1
            if self._followed[more] > _MOST_ROWS:
                raise ValueError("a page that belongs to many rows")
            overflow = self._page(more)
            (more,) = struct.unpack_from(">I", overflow)
            parts.append(overflow[4 : 4 + left])
            left -= self.size - 4
        return _exactly(b"".join(parts), length)


def page_size(data: Bytes) -> int:
    """The page size in the header, else the one with which the file's beginning has most rows."""
    said = int.from_bytes(data[16:18], "big") if data[: len(MAGIC)] == MAGIC else 0
    if said == 1:  # 65536 does not fit into two bytes
        return SIZES[-1]
    if said in SIZES:
        return said
    start = data[: 1 << 22]
    return max(SIZES, key=lambda size: sum(1 for _ in Pages(start, size).rows()))


def _exactly(data: bytes, length: int) -> bytes:
    if len(data) != length:
        raise ValueError("cut off")
    return data


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer of up to nine bytes, and the place after it."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9


def _values(payload: bytes) -> tuple[Value, ...]:
    end, at = _varint(payload, 0)
    body, values = end, []
    while at < end:
        kind, at = _varint(payload, at)
        value, body = _value(payload, body, kind)
        values.append(value)
    if body != len(payload):
        raise ValueError("columns that do not fill the row")
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    """The value of a column with this serial type, and the place after it."""
    if kind in (0, 8, 9):
        return (None if kind == 0 else kind - 8), at
    if kind in (10, 11):
        raise ValueError("a reserved type")
    size = (kind - 12) // 2 if kind >= 12 else _INTEGER_BYTES.get(kind, 8)
    data = _exactly(payload[at : at + size], size)
    after = at + size
    if kind >= 12:
        return (data.decode() if kind % 2 else data), after
    if kind == 7:
        return struct.unpack(">d", data)[0], after
    return int.from_bytes(data, "big", signed=True), after
