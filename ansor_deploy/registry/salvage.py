"""Copy the intact rows of a damaged registry into a new file, and keep the damaged file aside."""

import errno
import fcntl
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import RegistryError
from ..system.json_types import Count
from .connect import SQLITES_LOCKS
from .database import Database
from .faults import OTHERWISE, DamagedError, explained, in_use
from .raw_pages import Pages, page_size
from .schema import BEATEN, TABLES, Row

_ATTEMPTS = 3  # how often reading a piece of the file is tried

# A contest is meaningless without its two records, and these are never added again.
_ORPHANS = """
    DELETE FROM beaten WHERE loser NOT IN (SELECT id FROM records)
    OR winner NOT IN (SELECT id FROM records)
"""


@dataclass(frozen=True)
class Salvage:
    """What was saved of a registry.

    kept: rows by table. lost: rows by table; None where the damaged file does not say how many
    there were. aside: the damaged file.
    """

    kept: dict[str, Count]
    lost: dict[str, Count | None]
    aside: Path


# A row of `beaten` looks like one of its index, so that only SQLite can know it.
_KNOWN_BY_LOOKS = tuple(table for table in TABLES if table is not BEATEN)


def salvage(path: Path) -> Salvage:
    """Replace a damaged file by one with its intact rows.

    Rows without their workload or target are kept: `restore`, or the next build of their model,
    brings these back. RegistryError if the file is in use, or has no intact row.
    """
    aside, fresh = (path.with_name(f"{path.name}.{what}") for what in ("damaged", "repaired"))
    fresh.unlink(missing_ok=True)  # left by an interrupted repair
    counts, contests = _readable(path)
    with explained(path), _locked(path) as data:
        with explained(fresh):
            kept = _copy(Pages(data, page_size(data)), fresh, contests)
        if not any(kept.values()):
            fresh.unlink()
            raise DamagedError(path, "no row in it is whole", OTHERWISE)
        _exchange(path, fresh, aside)
    lost = {name: None if n is None else max(0, n - kept[name]) for name, n in counts.items()}
    return Salvage(dict(kept), lost, aside)


def _readable(path: Path) -> tuple[dict[str, int | None], list[Row]]:
    """What SQLite can still read: the number of rows of each table, and the contests."""
    counts: dict[str, int | None] = dict.fromkeys(table.name for table in TABLES)
    contests: list[Row] = []
    with suppress(RegistryError), Database.open(path, write=False) as database:
        for name in counts:
            with suppress(RegistryError):
                counts[name] = database.rows(f"SELECT count(*) AS n FROM {name}")[0]["n"]  # noqa: S608
        with suppress(RegistryError):
            contests += [tuple(row.values()) for row in database.rows("SELECT * FROM beaten")]
    return counts, contests


def _copy(pages: Pages, fresh: Path, contests: list[Row]) -> Counter[str]:
    """Write the intact rows to a new registry, and count them by table."""
    kept: Counter[str] = Counter()
    with Database.open(fresh) as database:
        database.rows("PRAGMA foreign_keys = OFF")
        with database.writing() as run:
            for row in pages.rows():
                wholes = ((table.name, table.whole(*row)) for table in _KNOWN_BY_LOOKS)
                name, values = next((found for found in wholes if found[1]), ("", ()))
                if values:
                    kept[name] += _add(run, name, values)
            for contest in contests:
                kept["beaten"] += _add(run, "beaten", contest)
            kept["beaten"] -= run.execute(_ORPHANS).rowcount
    return kept


def _add(connection: sqlite3.Connection, table: str, values: Row) -> int:
    """Add a row: 1, or 0 where it is there already or violates a constraint."""
    places = ", ".join("?" * len(values))
    sql = f"INSERT OR IGNORE INTO {table} VALUES ({places})"  # noqa: S608
    return connection.execute(sql, values).rowcount


class _Disk:
    """The bytes of an open file; those the disk cannot read are zeros, which make no rows."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._size = descriptor, os.fstat(descriptor).st_size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice, /) -> bytes:
        start, stop, _ = part.indices(self._size)
        size = max(0, stop - start)
        attempts = (self._read(size, start) for _ in range(_ATTEMPTS))
        return next((found for found in attempts if found is not None), bytes(size))

    def _read(self, size: int, start: int) -> bytes | None:
        try:
            return os.pread(self._descriptor, size, start)
        except OSError as error:
            if error.errno == errno.EIO:
                return None
            raise


@contextmanager
def _locked(path: Path) -> Iterator[_Disk]:
    """The file's bytes, while no process can read or write it through SQLite."""
    if not path.stat().st_size:
        raise DamagedError(path, "it is empty")
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, *SQLITES_LOCKS)
        except BlockingIOError as error:
            raise in_use(path) from error
        yield _Disk(file.fileno())


def _exchange(path: Path, fresh: Path, aside: Path) -> None:
    """Swap the files, so that there always is one at the path. A journal stays with its file."""
    aside.unlink(missing_ok=True)
    aside.hardlink_to(path)
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():
        journal.replace(aside.with_name(f"{aside.name}-journal"))
    fresh.replace(path)
