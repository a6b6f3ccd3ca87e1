"""What keeps a registry small and whole."""

from collections import Counter
from collections.abc import Iterator

from .database import Database
from .faults import DamagedError, explained
from .schema import MEASUREMENTS, RECORDS, WORKLOADS

# Ids of rows that no build asks for. All that were beaten go at once: a loser that outlived the
# one that beat it would be the best again.
_SURPLUS = {
    "records": """
        SELECT id FROM (
            SELECT id, lost, row_number() OVER (
                PARTITION BY workload, target, tvm ORDER BY lost, latency, id
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


class Upkeep(Database):
    """Integrity and space."""

    def collect(self, *, dry_run: bool) -> dict[str, int]:
        """Drop what no build asks for, and say how many rows that were, or would be.

        records: those that another one has beaten, and those behind the best eight of their task.
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
        """What is wrong with the file; reads every page and every row."""
        found = [str(*row.values()) for row in self.rows("PRAGMA integrity_check(20)")]
        if found != ["ok"]:
            return found
        orphans = self.rows("PRAGMA foreign_key_check")
        lacking = Counter((row["table"], row["parent"]) for row in orphans)
        lines = [f"{table}: {n} lack their {parent}" for (table, parent), n in lacking.items()]
        return [*lines, *self._unreadable()]

    def _unreadable(self) -> Iterator[str]:
        """Rows that SQLite can read but that are not as they were written."""
        for table in (WORKLOADS, RECORDS, MEASUREMENTS):
            for row in self.walk(table.name):
                try:
                    self.noun(table, row)
                except DamagedError as error:  # noqa: PERF203 - of this row alone
                    yield f"{table.name}: {error.message}"
