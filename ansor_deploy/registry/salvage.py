"""Save what is whole of a damaged registry into a new file, and keep the damaged one aside."""

from __future__ import annotations

import fcntl
import mmap
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RegistryError
from .connect import connect, transaction
from .faults import damaged, explained, in_use
from .pages import Pages, Row, Value, page_size
from .rows import measurement_of, measurement_row, record_of, record_row, workload_of, workload_row

if TYPE_CHECKING:
    import sqlite3

_SQLITES_LOCKS = (512, 0x40000000)  # bytes of the file that stand for its locks: length, start
_DIGEST = re.compile("[0-9a-f]{64}")

# A contest says nothing without its two records; they are never added again.
_ORPHANS = """
    DELETE FROM beaten WHERE loser NOT IN (SELECT id FROM records)
    OR winner NOT IN (SELECT id FROM records)
"""


@dataclass(frozen=True)
class Salvage:
    """What was saved of a registry.

    kept: rows by table. lost: rows by table, as far as the damaged file still told how many there
    were; None where it did not. aside: the damaged file.
    """

    kept: dict[str, int]
    lost: dict[str, int | None]
    aside: Path


@dataclass(frozen=True)
class _Shape:
    """How a table's rows look, a letter a column.

    #: the row's number. d: a digest. t: text. i: an integer. r: a real. b: bytes. ?: bytes or none.
    n: a real or none.
    """

    table: str
    columns: str
    numbered: bool = True  # False: a table without rowids
    later: tuple[Value, ...] = ()  # values of the last columns in rows that are older than these

    def fits(self, row: Row) -> bool:
        """Whether a row can be one of this table's."""
        count = len(row.values)
        return (
            len(self.columns) - len(self.later) <= count <= len(self.columns)
            and (row.number is not None) == self.numbered
            and all(map(_is, self.columns[:count], row.values))
        )


# What a row of `builds` says that was written before there were such columns.
_UNKNOWN = ("", "{}", 0, 0, 0, 0, 0, None, None, "", "{}", "{}", "", "")
_SHAPES = (
    _Shape("workloads", "dtttttrrb"),
    _Shape("targets", "dtt"),
    _Shape("measurements", "#ddttttb?"),
    _Shape("records", "dddtrttttb"),
    _Shape("models", "dt"),
    _Shape("model_tasks", "dddi", numbered=False),
    _Shape("builds", "#tddttttiiiiinnttttt", later=_UNKNOWN),
    _Shape("tunings", "#dtirt"),
    _Shape("searches", "#ddttititt", later=("",)),
)
# Rows that can be told to be as they were written: their columns, and how to write them again.
_NOUNS: dict[str, tuple[str, Callable[[dict[str, Any]], tuple[Any, ...]]]] = {
    "workloads": (
        "key op name family shapes dtypes flops bytes text",
        lambda row: workload_row(workload_of(row)),
    ),
    "measurements": (
        "id workload target seconds error message provenance trace features",
        lambda row: measurement_row(measurement_of(row)),
    ),
    "records": (
        "id workload target tvm latency created seconds proof provenance trace",
        lambda row: record_row(record_of(row)),
    ),
}


def salvage(path: Path) -> Salvage:
    """Put a file with what is whole in the place of a damaged one.

    Rows whose workload or target is lost are kept: the next build of their model brings it back.
    RegistryError if the file is in use, or has nothing that is whole.
    """
    aside, fresh = (path.with_name(f"{path.name}.{what}") for what in ("damaged", "repaired"))
    fresh.unlink(missing_ok=True)  # of a repair that was interrupted
    counts, contests = _still_told(path)
    with explained(path), _locked(path) as data:
        with explained(fresh):
            kept = _copy(Pages(data, page_size(data)), fresh, contests)
        if not any(kept.values()):
            fresh.unlink()
            raise damaged(path, "no row in it is whole")
        _exchange(path, fresh, aside)
    lost = {name: None if n is None else max(0, n - kept[name]) for name, n in counts.items()}
    return Salvage(dict(kept), lost, aside)


def _still_told(path: Path) -> tuple[dict[str, int | None], list[tuple[str, str, str]]]:
    """What SQLite can still read: the rows of each table, and who has beaten whom.

    A row of `beaten` looks like one of its index, so that it is not told by its looks.
    """
    counts: dict[str, int | None] = dict.fromkeys(
        ("workloads", "targets", "records", "measurements", "beaten")
    )
    contests: list[tuple[str, str, str]] = []
    with suppress(RegistryError), closing(connect(path, write=False)) as connection:
        for name in counts:
            with suppress(RegistryError), explained(path):
                sql = f"SELECT count(*) FROM {name}"  # noqa: S608
                counts[name] = connection.execute(sql).fetchone()[0]
        with suppress(RegistryError), explained(path):
            contests += connection.execute("SELECT loser, winner, created FROM beaten").fetchall()
    return counts, contests


def _copy(pages: Pages, fresh: Path, contests: list[tuple[str, str, str]]) -> Counter[str]:
    """Write the whole rows to a new registry, and count them by table."""
    kept: Counter[str] = Counter()
    with closing(connect(fresh, write=True)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        with transaction(connection):
            for row in pages.rows():
                shape = next((shape for shape in _SHAPES if shape.fits(row)), None)
                values = shape and _checked(shape, row)
                if shape and values:
                    kept[shape.table] += _add(connection, shape.table, values)
            for contest in contests:
                kept["beaten"] += _add(connection, "beaten", contest)
            kept["beaten"] -= connection.execute(_ORPHANS).rowcount
    return kept


def _checked(shape: _Shape, row: Row) -> Sequence[Value]:
    """The row's values as they are written today; none where it is not as it was written."""
    values = (row.number, *row.values[1:]) if shape.columns.startswith("#") else row.values
    if lacking := len(shape.columns) - len(values):
        values = (*values, *shape.later[-lacking:])
    if shape.table not in _NOUNS:
        return values
    columns, again = _NOUNS[shape.table]
    try:
        found = again(dict(zip(columns.split(), values, strict=True)))
    except (zlib.error, ValueError, KeyError, TypeError):
        return ()
    return (row.number, *found) if shape.table == "measurements" else found


def _add(connection: sqlite3.Connection, table: str, values: Sequence[Value]) -> int:
    """1, or 0 where the row is there already or breaks a rule."""
    places = ", ".join("?" * len(values))
    sql = f"INSERT OR IGNORE INTO {table} VALUES ({places})"  # noqa: S608
    return connection.execute(sql, values).rowcount


def _is(kind: str, value: Value) -> bool:
    """Whether a value can stand in a column of this kind."""
    if kind in "#?n" and value is None:
        return True
    if kind in "dt":
        return isinstance(value, str) and (kind != "d" or _DIGEST.fullmatch(value) is not None)
    if kind in "b?":
        return isinstance(value, bytes)
    if kind == "i":
        return isinstance(value, int)
    return kind in "rn" and isinstance(value, (int, float))


@contextmanager
def _locked(path: Path) -> Iterator[mmap.mmap]:
    """The file's bytes, while no process can read or write it through SQLite."""
    if not path.stat().st_size:
        raise damaged(path, "it is empty")
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, *_SQLITES_LOCKS)
        except BlockingIOError as error:
            raise in_use(path) from error
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _exchange(path: Path, fresh: Path, aside: Path) -> None:
    """At every moment there is a file at the path; a journal stays with the file it belongs to."""
    aside.unlink(missing_ok=True)
    aside.hardlink_to(path)
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():
        journal.replace(aside.with_name(f"{aside.name}-journal"))
    fresh.replace(path)
