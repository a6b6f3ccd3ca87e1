"""Make a bundle of a registry's contents, and add a bundle to a registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from operator import add
from pathlib import Path
from typing import Any

from ..system.digest import canonical_json
from .additions import UNLESS_KNOWN, UNLESS_NAMED, Additions
from .bundle import MOST_LINE, MOST_REFUSED, Bundle, read_lines, record_line
from .firewall import target_fields
from .foreign import MOST_BYTES, foreign_file, too_large
from .schema import BEATEN, RECORDS, SEARCHES, TARGETS, UNREADABLE, WORKLOADS, Table
from .store import Registry

_SENT = (TARGETS, WORKLOADS, RECORDS, SEARCHES, BEATEN)
Rows = list[dict[str, Any]]

# Others' targets and searches never replace what this machine knows. A bundle does not say under
# which rules a search has ended: it gets those of its newest record.
_ADD_SEARCH = """
    INSERT INTO searches
    SELECT NULL, :workload, :target, :tvm, :search, :trials, :reason, :enough_for, :created,
        coalesce((
            SELECT json_extract(provenance, '$.rules') FROM records
            WHERE workload = :workload AND target = :target AND tvm = :tvm AND created <= :created
            ORDER BY created DESC, id LIMIT 1
        ), ''), TRUE
    WHERE NOT EXISTS (
        SELECT 1 FROM searches
        WHERE workload = :workload AND target = :target AND tvm = :tvm AND search = :search
        AND (trials, reason, enough_for, created) = (:trials, :reason, :enough_for, :created)
    )
"""


@dataclass(frozen=True)
class Taken:
    """What was added to a registry. records: new ones. known: those that it had already.

    contests: those that are new, or later than the ones it had.
    """

    records: int
    known: int
    contests: int = 0

    def __add__(self, other: Taken) -> Taken:
        return Taken(*map(add, astuple(self), astuple(other)))


def contents(
    path: Path, wanted: Callable[[str, str], bool] = lambda workload, target: True
) -> tuple[Bundle, list[str]]:
    """The bundle of the user's own registry, and the reasons why others would refuse the rest.

    wanted: whether a workload, on a target, is wanted, by their keys. RegistryError if the file is
    damaged.
    """
    with Registry.open(path, write=False) as registry:
        rows = {table: registry.rows(f"SELECT * FROM {table.name}") for table in _SENT}  # noqa: S608
    return read_lines(_lines(_only(wanted, rows)))


def contents_of_other(path: Path) -> tuple[Bundle, list[str]]:
    """The bundle of somebody else's registry, and the reasons why the rest is refused.

    Nothing in the file is run, and nothing is written to it. RegistryError if it is not a registry,
    is damaged, or larger than a bundle may be.
    """
    with foreign_file(path) as file:
        rows = {table: file.rows(table.name, f"SELECT * FROM {table.name}") for table in _SENT}  # noqa: S608
    return read_lines(_bounded(path, _lines(rows)), MOST_REFUSED)


def take_in(path: Path, bundle: Bundle) -> Taken:
    """Add a checked bundle to a registry, which is created if it does not exist."""
    with Registry.open(path) as registry:
        return add_bundle(registry, bundle)


def add_bundle(registry: Additions, bundle: Bundle) -> Taken:
    """Add a checked bundle to an open registry.

    It is a union: existing rows stay as they are, and adding twice is the same as adding once.
    """
    # A target has its cpu's name and no figures, until a build on this machine gives it both.
    targets = [
        (target.fingerprint, target.name, canonical_json(target_fields(target.to_json())))
        for target in bundle.targets.values()
    ]
    # Rows are packed before the file is locked.
    workloads = list(map(WORKLOADS.row, bundle.workloads.values()))
    records = list(map(RECORDS.row, bundle.records.values()))
    ends = [{**vars(end), **vars(end.key), "key": None} for end in bundle.searches]
    with registry.writing() as run:
        run.executemany(TARGETS.insert + UNLESS_KNOWN, targets)
        run.executemany(WORKLOADS.insert + UNLESS_NAMED, workloads)
        new = max(0, run.executemany(RECORDS.insert + UNLESS_KNOWN, records).rowcount)  # -1: none
        run.executemany(_ADD_SEARCH, ends)
        return Taken(new, len(records) - new, registry.add_contests(bundle.contests))


def _only(wanted: Callable[[str, str], bool], rows: dict[Table, Rows]) -> dict[Table, Rows]:
    """The records and ends of searches that are wanted, and the contests of these records."""
    kept = {
        table: [row for row in rows[table] if wanted(row["workload"], row["target"])]
        for table in (RECORDS, SEARCHES)
    }
    left_out = {row["id"] for row in rows[RECORDS]} - {row["id"] for row in kept[RECORDS]}
    contests = [row for row in rows[BEATEN] if left_out.isdisjoint((row["loser"], row["winner"]))]
    return {**rows, **kept, BEATEN: contests}


def _bounded(path: Path, lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The lines, up to the limit of a bundle: a small file may expand to much."""
    left = MOST_BYTES
    for name, line in lines:
        left -= len(line) or MOST_LINE
        if left < 0:
            raise too_large(path)
        yield name, line


def _lines(rows: dict[Table, Rows]) -> Iterator[tuple[str, str]]:
    """Every entry as (name, line of a bundle), unchecked."""
    # Workloads that only a plan has added are not sent.
    used = {row["workload"] for table in (RECORDS, SEARCHES) for row in rows[table]}
    for table, found in rows.items():
        for row in found:
            if table is WORKLOADS and row["key"] not in used:
                continue
            name = f"{table.entry} {ascii(str(next(iter(row.values())))[:12])[1:-1]}"
            try:
                yield name, _line(table, row)
            except UNREADABLE:
                yield name, ""  # not JSON, so that it is refused like any other such line


def _line(table: Table, row: dict[str, Any]) -> str:
    if table is RECORDS:
        return record_line(row["id"], table.sent(row))
    sent = target_fields(json.loads(row["json"])) if table is TARGETS else table.sent(row)
    return canonical_json({table.entry: sent})
