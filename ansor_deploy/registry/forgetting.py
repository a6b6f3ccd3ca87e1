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
}


class Forgetting(Database):
    """What a user throws out by hand: unlike what `collect` drops, builds do ask for it."""

    def forget(self, what: str, it: str, *, dry_run: bool) -> dict[str, int]:
        """Remove the records of something, and say how many rows of each table that were.

        what: "task", by its workload's key; "record", by its id; or "device", that measured them,
        by its name. Comparisons with them go, too, and of a task the ends of its searches.
        """
        of = dict(zip(("records", "measurements", "searches"), _OF[what], strict=True))
        ours = f"(SELECT id FROM records WHERE {of['records']})"  # noqa: S608 - conditions of ours
        wheres = {name: f"FROM {name} WHERE {where}" for name, where in of.items()}
        with self.writing() as run:
            found = {
                n: len(run.execute(f"SELECT 1 {s}", {"it": it}).fetchall())
                for n, s in wheres.items()
            }
            if not dry_run:
                wheres["records"] = wheres.pop("records")  # last: measurements are found by theirs
                contests = f"FROM beaten WHERE loser IN {ours} OR winner IN {ours}"
                for sql in (contests, *wheres.values()):
                    run.execute(f"DELETE {sql}", {"it": it})
        return found
