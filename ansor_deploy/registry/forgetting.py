"""Taking records out of a registry again, with all that was learnt of them."""

from .database import Database

# What is meant, of records, measurements and ends of searches each. A measurement is of a record
# where it has its trace.
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
    """What a user throws out by hand: unlike what `collect` drops, builds do ask for it."""

    def forget(self, what: str, it: str, *, dry_run: bool) -> dict[str, int]:
        """Remove the records of something, and say how many rows of each table that were.

        what: "task", by its workload's key; "record", by its id; "device", that measured them,
        by its name; or "claims", whatever `it` is. Comparisons with them go, too, and of a task
        and of claims the ends of searches.
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
    """The rows that conditions mean, by table, as SQL from its FROM on, in the order to delete.

    Comparisons are those of the records, which come last, since others may be found by them.
    """
    ours = f"(SELECT id FROM records WHERE {records})"  # noqa: S608 - conditions of ours
    return {
        "beaten": f"FROM beaten WHERE loser IN {ours} OR winner IN {ours}",
        "measurements": f"FROM measurements WHERE {measurements}",
        "searches": f"FROM searches WHERE {searches}",
        "records": f"FROM records WHERE {records}",
    }
