"""A registry's contents as a bundle, and a bundle into a registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from operator import add
from pathlib import Path
from typing import Any

from ..errors import RegistryError
from ..system.digest import canonical_json
from .bundle import Bundle, read_lines, record_line
from .firewall import target_fields
from .schema import BEATEN, RECORDS, SEARCHES, TARGETS, UNREADABLE, WORKLOADS, Table
from .store import Registry

_SENT = (TARGETS, WORKLOADS, RECORDS, SEARCHES, BEATEN)
# Workloads that only a plan has asked for stay at home.
_USED = "WHERE key IN (SELECT workload FROM records UNION SELECT workload FROM searches)"

# What others say of a target or a search never replaces what this machine knows. A bundle does not
# say under which rules a search has ended: those by which its newest record was found.
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
        AND (trials, reason, enough_for, created) = (:trials, :reason, :enough_for, :created)
    )
"""
_COUNT = "SELECT count(*) AS n FROM records"


@dataclass(frozen=True)
class Taken:
    """What came into a registry. records: new ones. known: those that it had already.

    contests: new ones, or later than those that it had.
    """

    records: int
    known: int
    contests: int = 0

    def __add__(self, other: Taken) -> Taken:
        return Taken(*map(add, astuple(self), astuple(other)))


def contents(path: Path) -> tuple[Bundle, list[str]]:
    """What of a registry another one may take in, and what it would refuse.

    RegistryError if the file is damaged, or its tables are not those of a registry.
    """
    with Registry.open(path, write=False) as registry:
        _check_tables(registry)
        return read_lines(_lines(registry))


def take_in(path: Path, bundle: Bundle) -> Taken:
    """Add a checked bundle to a registry, which is made if it is not there.

    It is a union: whatever was there stays as it is, and taking in twice is taking in once.
    """
    with Registry.open(path) as registry:
        before = registry.rows(_COUNT)[0]["n"]
        # Under its cpu's name and without figures, until a build on this machine gives it both.
        targets = [
            (target.fingerprint, target.name, canonical_json(target_fields(target.to_json())))
            for target in bundle.targets.values()
        ]
        registry.write(TARGETS.insert + " ON CONFLICT DO NOTHING", targets)
        registry.add_workloads(bundle.workloads.values())
        registry.add_batch([], bundle.records.values())
        rows = [{**vars(end), **vars(end.key), "key": None} for end in bundle.searches]
        registry.write(_ADD_SEARCH, rows)
        new = registry.rows(_COUNT)[0]["n"] - before
        return Taken(new, len(bundle.records) - new, registry.add_contests(bundle.contests))


def _check_tables(registry: Registry) -> None:
    """RegistryError if a view stands in a table's place: it could be any query, and never end."""
    rows = registry.rows("SELECT name, type || ':' || sql AS made FROM sqlite_master")
    made = {row["name"]: str(row["made"]) for row in rows}
    for table in _SENT:
        if not made.get(table.name, "").startswith("table:CREATE TABLE"):
            raise RegistryError(
                f"{registry.path} is refused: its {table.name} are no plain table",
                "Ask for a bundle: `ansor-deploy registry export` where it was made.",
            )


def _lines(registry: Registry) -> Iterator[tuple[str, str]]:
    """Every entry as (which, line of a bundle); unchecked."""
    for table in _SENT:
        where = _USED if table is WORKLOADS else ""
        for row in registry.rows(f"SELECT * FROM {table.name} {where}"):  # noqa: S608
            name = f"{table.entry} {ascii(str(next(iter(row.values())))[:12])[1:-1]}"
            try:
                yield name, _line(table, row)
            except UNREADABLE:
                yield name, ""  # no JSON, so refused like any other line that is not


def _line(table: Table, row: dict[str, Any]) -> str:
    if table is RECORDS:
        return record_line(row["id"], table.sent(row))
    sent = target_fields(json.loads(row["json"])) if table is TARGETS else table.sent(row)
    return canonical_json({table.entry: sent})
