"""A registry's contents as a bundle, and a bundle into a registry."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from ..errors import RegistryError
from ..system.digest import canonical_json
from ..target import Target
from .bundle import Bundle, Refusal, read_lines, record_line
from .connect import connect, transaction
from .faults import explained
from .firewall import target_fields
from .rows import unpacked
from .store import Registry

_TABLES = ("targets", "workloads", "records", "searches", "beaten")

# What others say of a target or a search never replaces what this machine knows. A bundle does not
# say under which rules a search has ended: those by which its newest record was found.
_ADD_TARGET = "INSERT INTO targets VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_ADD_SEARCH = """
    INSERT INTO searches
    SELECT NULL, :workload, :target, :tvm, :search, :trials, :reason, :enough_for, :created,
        coalesce((
            SELECT json_extract(provenance, '$.rules') FROM records
            WHERE workload = :workload AND target = :target AND tvm = :tvm AND created <= :created
            ORDER BY created DESC, id LIMIT 1
        ), '')
    WHERE NOT EXISTS (
        SELECT 1 FROM searches
        WHERE workload = :workload AND target = :target AND tvm = :tvm AND search = :search
        AND trials = :trials AND reason = :reason AND enough_for = :enough_for
        AND created = :created
    )
"""
_WORKLOADS = """
    SELECT * FROM workloads
    WHERE key IN (SELECT workload FROM records UNION SELECT workload FROM searches)
"""


@dataclass(frozen=True)
class Taken:
    """What came into a registry. records: new ones. known: those that it had already.

    contests: new ones, or later than those that it had.
    """

    records: int
    known: int
    contests: int = 0

    def __add__(self, other: Taken) -> Taken:
        return Taken(
            self.records + other.records,
            self.known + other.known,
            self.contests + other.contests,
        )


def contents(path: Path) -> tuple[Bundle, list[Refusal]]:
    """What of a registry another one may take in, and what it would refuse.

    RegistryError if the file is damaged, or its tables are not those of a registry.
    """
    with explained(path), closing(connect(path, write=False)) as connection:
        _check_tables(connection, path)
        return read_lines(_lines(connection))


def take_in(path: Path, bundle: Bundle) -> Taken:
    """Add a checked bundle to a registry, which is made if it is not there.

    It is a union: whatever was there stays as it is, and taking in twice is taking in once.
    """
    with explained(path), closing(connect(path, write=True)) as connection:
        store = Registry(connection, path)
        before = _count(connection)
        targets = [_target_row(target) for target in bundle.targets.values()]
        with transaction(connection):
            connection.executemany(_ADD_TARGET, targets)
        store.add_workloads(list(bundle.workloads.values()))
        store.add_batch([], list(bundle.records.values()))
        rows = [{**vars(end), **vars(end.key)} for end in bundle.searches]
        with transaction(connection):
            connection.executemany(_ADD_SEARCH, [{**row, "key": None} for row in rows])
        new = _count(connection) - before
        return Taken(new, len(bundle.records) - new, store.add_contests(bundle.contests))


def _count(connection: Connection) -> int:
    found: int = connection.execute("SELECT count(*) FROM records").fetchone()[0]
    return found


def _target_row(target: Target) -> tuple[str, str, str]:
    """Under its cpu's name, until a build on this machine gives it one."""
    return target.fingerprint, target.name, canonical_json(target_fields(target.to_json()))


def _check_tables(connection: Connection, path: Path) -> None:
    """A view in a table's place could be any query, and never end."""
    kinds = dict(connection.execute("SELECT name, type || ':' || sql FROM sqlite_master"))
    for name in _TABLES:
        if not str(kinds.get(name)).startswith("table:CREATE TABLE"):
            raise RegistryError(
                f"{path} is refused: its {name} are no plain table",
                "Ask for a bundle: `ansor-deploy registry export` where it was made.",
            )


def _lines(connection: Connection) -> Iterator[tuple[str, str]]:
    """Every entry as (place, line of a bundle); unchecked."""
    reader = connection.cursor()
    reader.row_factory = lambda cursor, row: dict(
        zip([column[0] for column in cursor.description], row, strict=True)
    )
    entries = (
        ("target", "SELECT * FROM targets", _target),
        ("workload", _WORKLOADS, _workload),
        ("record", "SELECT * FROM records", _record),
        ("search", "SELECT * FROM searches", _search),
        ("contest", "SELECT loser, winner, created FROM beaten", _contest),
    )
    for kind, query, line in entries:
        for row in reader.execute(query):
            place = f"{kind} {ascii(str(next(iter(row.values())))[:12])[1:-1]}"
            try:
                yield place, line(row)
            except (ValueError, KeyError, TypeError, zlib.error, RecursionError):
                yield place, ""  # no JSON, so refused like any other line that is not


def _target(row: dict[str, Any]) -> str:
    return canonical_json({"target": target_fields(json.loads(row["json"]))})


def _workload(row: dict[str, Any]) -> str:
    parsed = {name: json.loads(row[name]) for name in ("shapes", "dtypes")}
    plain = {name: row[name] for name in ("key", "op", "family", "flops", "bytes")}
    return canonical_json({"workload": {**plain, **parsed, "text": unpacked(row["text"])}})


def _record(row: dict[str, Any]) -> str:
    parsed = {name: json.loads(row[name]) for name in ("seconds", "proof", "provenance")}
    return record_line(row["id"], {**parsed, "key": _key(row), "trace": unpacked(row["trace"])})


def _search(row: dict[str, Any]) -> str:
    fields = ("tvm", "search", "trials", "reason", "enough_for", "created")
    plain = {name: row[name] for name in fields}
    return canonical_json({"search": {**plain, "key": _key(row)}})


def _contest(row: dict[str, Any]) -> str:
    return canonical_json({"contest": row})


def _key(row: dict[str, Any]) -> dict[str, str]:
    return {"workload": row["workload"], "target": row["target"]}
