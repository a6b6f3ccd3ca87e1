"""Remove records from a registry, with everything that was learnt about them."""

from .database import Database

# For each kind, the conditions on records, on measurements and on ends of searches. A measurement
# belongs to a record if it has the same trace.
_OF = {
    "task": ("workload = :it", "workload = :it", "workload = :it"),
    "record": (
        "id = :it",
        "(target, workload, trace) IN (SELECT target, workload, trace FROM records WHERE id = :it)",
        "FALSE",
    ),
    "device": (
        "json_extract(provenance, '$.device') = :it",
        "json_extract(provenance, '$.device') = :it",
        "FALSE",
    ),
    "claims": ("claimed", "FALSE", "claimed"),
}


_COUNTED = ("records", "measurements", "searches")


class Forgetting(Database):
    """Removes rows that a user names: unlike those that `collect` drops, builds may use them."""

    def forget(self, what: str, it: str, *, dry_run: bool) -> dict[str, int]:
        """Remove some records, and return how many rows of each table were removed.

        what: "task", with its workload's key as `it`; "record", with its id; "device", the one that
        measured them, with its name; or "claims", with any `it`. Comparisons with these records are
        removed as well, and for a task and for claims also the ends of searches.
        """
        rows = rows_of(*_OF[what])
        with self.writing() as run:
            found = {
                name: len(run.execute(f"SELECT 1 {rows[name]}", {"it": it}).fetchall())
                for name in _COUNTED
            }
            for rest in () if dry_run else rows.values():
                run.execute(f"DELETE {rest}", {"it": it})
        return found


def rows_of(records: str, measurements: str, searches: str) -> dict[str, str]:
    """SQL, from its FROM on, of the rows of each table that meet a condition, in deletion order.

    Comparisons are those of the records. Records come last, since other rows are found by them.
    """
    ours = f"(SELECT id FROM records WHERE {records})"  # noqa: S608 - conditions of ours
    return {
        "beaten": f"FROM beaten WHERE loser IN {ours} OR winner IN {ours}",
        "measurements": f"FROM measurements WHERE {measurements}",
        "searches": f"FROM searches WHERE {searches}",
        "records": f"FROM records WHERE {records}",
    }
