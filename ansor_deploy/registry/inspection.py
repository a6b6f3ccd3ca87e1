"""What is wrong with a registry's file: every page is read, and every row made a noun again."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import RegistryError
from .faults import decoding, explained
from .rows import measurement_of, record_of, workload_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    Walk = Callable[[str], Iterator[dict[str, Any]]]

# Of each table, what identifies a row and what reads it.
_DECODERS: Mapping[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "workloads": ("key", workload_of),
    "records": ("id", record_of),
    "measurements": ("id", measurement_of),
}


def complaints(connection: sqlite3.Connection, path: Path, walk: Walk) -> list[str]:
    """What is wrong, in words; nothing where all is well. walk: gives the rows of a table."""
    with explained(path):
        found = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
        if found != ["ok"]:
            return found
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    lacking = Counter((table, parent) for table, _, parent, _ in orphans)
    told = [f"{table}: {n} lack their {parent}" for (table, parent), n in lacking.items()]
    return [*told, *_unreadable(path, walk)]


def _unreadable(path: Path, walk: Walk) -> Iterator[str]:
    """Rows that SQLite can read but that are not as they were written."""
    for table, (name, decode) in _DECODERS.items():
        for row in walk(table):
            complaint = _complaint(partial(decode, row), path, row[name])
            if complaint:
                yield f"{table}: {complaint}"


def _complaint(decode: Callable[[], object], path: Path, name: object) -> str:
    try:
        with decoding(path, name):
            decode()
    except RegistryError as error:
        return error.message
    return ""
