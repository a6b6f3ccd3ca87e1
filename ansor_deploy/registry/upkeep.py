"""Keep a registry small, and check its integrity."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..system.json_types import Count
from .database import Database
from .faults import DamagedError, explained
from .schema import MEASUREMENTS, RECORDS, TABLES, WORKLOADS

# Ids of rows that no build uses. Beaten records are all dropped at once: a loser that outlived the
# record that beat it would be the best again.
_SURPLUS = {
    "records": """
        SELECT id FROM (
            SELECT id, lost, row_number() OVER (
                PARTITION BY workload, target, tvm ORDER BY claimed, lost, latency, id
            ) AS place
            FROM standings
        ) WHERE place > 1 AND (lost OR place > 8)
    """,
    "builds": """
        SELECT id FROM builds WHERE id NOT IN (SELECT max(id) FROM builds GROUP BY artifact)
    """,
}

_DROP = {
    "records": (
        "DELETE FROM beaten WHERE loser = ?",
        "DELETE FROM beaten WHERE winner = ?",
        "DELETE FROM records WHERE id = ?",
    ),
    "builds": ("DELETE FROM builds WHERE id = ?",),
}


_OURS = json.dumps([*(table.name for table in TABLES), "leases"])
_REFERENCES = """
    SELECT c.name AS child, f."from" AS part, f."table" AS parent, f."to" AS key
    FROM sqlite_schema AS c, pragma_foreign_key_list(c.name) AS f
    WHERE c.name IN (SELECT value FROM json_each(:ours)) ORDER BY child, parent, part
"""
_DANGLING = """
    SELECT {part} AS key, count(*) AS n FROM {child}
    WHERE {part} NOT IN (SELECT {key} FROM {parent}) GROUP BY {part} ORDER BY {part}
"""


@dataclass(frozen=True)
class Lack:
    """A missing row that others refer to.

    table: the table it was in. key: the key that refers to it. waiting: how many rows of each table
    refer to it.
    """

    table: str
    key: str
    waiting: dict[str, Count]


class Upkeep(Database):
    """Checks integrity and frees space."""

    def collect(self, *, dry_run: bool) -> dict[str, int]:
        """Drop rows that no build uses, and return how many of each table were, or would be.

        records: those that another one has beaten, and those after the best eight of their task.
        builds: all but the newest of each artifact. Measurements stay: searches learn from them.
        """
        with self.writing() as run:
            found = {name: run.execute(sql).fetchall() for name, sql in _SURPLUS.items()}
            if not dry_run:
                for name, ids in found.items():
                    for sql in _DROP[name]:
                        run.executemany(sql, ids)
        return {name: len(ids) for name, ids in found.items()}

    def vacuum(self) -> None:
        """Rewrite the file without the space of dropped rows."""
        with explained(self.path):
            self._connection.execute("VACUUM")

    def verify(self) -> list[str]:
        """What is wrong with the file; it reads every page and every row."""
        return self.damage() or self.orphans()

    def damage(self) -> list[str]:
        """Pages and rows that are not as they were written."""
        found = [str(*row.values()) for row in self.rows("PRAGMA integrity_check(20)")]
        return list(self._unreadable()) if found == ["ok"] else found

    def orphans(self) -> list[str]:
        """Messages of how many rows of each table lack a row that they refer to."""
        lines: Counter[tuple[str, str]] = Counter()
        for lack in self.lacking():
            lines.update({(name, lack.table): n for name, n in lack.waiting.items()})
        return [f"{name}: {n} lack their {table}" for (name, table), n in lines.items()]

    def lacking(self) -> list[Lack]:
        """Missing rows that others refer to."""
        waiting: dict[tuple[str, str], dict[str, int]] = {}
        for ref in self.rows(_REFERENCES, {"ours": _OURS}):
            for row in self.rows(_DANGLING.format(**ref)):
                of = waiting.setdefault((ref["parent"], row["key"]), {})
                of[ref["child"]] = of.get(ref["child"], 0) + row["n"]
        return [Lack(table, key, of) for (table, key), of in waiting.items()]

    def _unreadable(self) -> Iterator[str]:
        """Rows that SQLite can read but that are not as they were written."""
        for table in (WORKLOADS, RECORDS, MEASUREMENTS):
            for row in self.walk(table.name):
                try:
                    self.noun(table, row)
                except DamagedError as error:  # noqa: PERF203 - of this row alone
                    yield f"{table.name}: {error.what}"
