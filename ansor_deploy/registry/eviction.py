"""Taking out of a registry what nobody has used for long, or what it has no room for."""

from __future__ import annotations

from typing import Any

from .forgetting import rows_of
from .record import TaskKey
from .upkeep import Upkeep

# Of each task when something was last learnt of it, or a build had it, and the bytes of its rows.
# What others claim is as old as they say: a layer that still has it gives it again.
_TASKS = """
    SELECT workload, target, max(used) AS used, sum(bytes) AS bytes FROM (
        SELECT workload, target, created AS used, length(trace) + length(seconds)
            + length(proof) + length(provenance) + 400 AS bytes FROM records
        UNION ALL
        SELECT workload, target, json_extract(provenance, '$.created'), length(trace)
            + length(seconds) + length(provenance) + coalesce(length(features), 0) + 200
        FROM measurements
        UNION ALL
        SELECT workload, target, created, 300 FROM searches
        UNION ALL
        SELECT k.workload, k.target, max(b.created), 0
        FROM builds AS b JOIN model_tasks AS k ON k.model = b.model AND k.target = b.target
        GROUP BY k.workload, k.target
    ) GROUP BY workload, target HAVING sum(bytes) > 0 ORDER BY used, workload, target
"""
_OF_KEY = "workload = :workload AND target = :target"


class Eviction(Upkeep):
    """A cache's limits: of age, and of size."""

    def evict(self, before: str, most: int | None, *, dry_run: bool) -> int:
        """Forget whole tasks, those first that were used least lately; how many.

        before: ISO 8601, UTC; what was last used earlier goes. most: bytes of the file, from which
        what was dropped is then taken; of a dry run what it will come to is an estimate.
        """
        tasks = self.rows(_TASKS)
        count = sum(row["used"] < before for row in tasks)
        if most is not None:
            count = max(count, _enough(tasks, self._used_bytes() - most))
        if dry_run:
            return count
        self._drop(tasks[:count])
        if most is None or self.path.stat().st_size <= most:
            return count
        self.vacuum()  # which shows how much it was
        larger = count and self._used_bytes() > most
        return count + (self.evict("", most, dry_run=False) if larger else 0)

    def _drop(self, rows: list[dict[str, Any]]) -> None:
        keys = [vars(TaskKey(row["workload"], row["target"])) for row in rows]
        with self.writing() as run:
            for rest in rows_of(_OF_KEY, _OF_KEY, _OF_KEY).values():
                run.executemany(f"DELETE {rest}", keys)

    def _used_bytes(self) -> int:
        """Bytes of the file without pages that are free."""
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (self.rows(f"PRAGMA {name}")[0][name] for name in names)
        return int((pages - free) * size)


def _enough(tasks: list[dict[str, Any]], excess: int) -> int:
    """How many tasks, from the first, have so many bytes; all if they have fewer."""
    for count, row in enumerate(tasks):
        if excess <= 0:
            return count
        excess -= row["bytes"]
    return len(tasks)
