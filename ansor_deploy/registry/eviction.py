"""Remove from a registry what was not used for long, or what exceeds its size limit."""

from __future__ import annotations

from typing import Any

from .forgetting import rows_of
from .record import TaskKey
from .upkeep import Upkeep

# For each task, when it was last measured or used in a build, and the bytes of its rows. Claims of
# others count with their own dates: a layer that still has them gives them again.
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
    """Limits a registry's age and size, as for a cache."""

    def evict(self, before: str, most: int | None, *, dry_run: bool) -> int:
        """Forget whole tasks, the least recently used first; return how many.

        before: ISO 8601, UTC; tasks last used earlier are forgotten. most: bytes that the file may
        have; it is then also rewritten without their space. A dry run only estimates this size.
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
        self.vacuum()  # it shows how much space was freed
        larger = count and self._used_bytes() > most
        return count + (self.evict("", most, dry_run=False) if larger else 0)

    def _drop(self, rows: list[dict[str, Any]]) -> None:
        keys = [vars(TaskKey(row["workload"], row["target"])) for row in rows]
        with self.writing() as run:
            for rest in rows_of(_OF_KEY, _OF_KEY, _OF_KEY).values():
                run.executemany(f"DELETE {rest}", keys)

    def _used_bytes(self) -> int:
        """Bytes of the file without free pages."""
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (self.rows(f"PRAGMA {name}")[0][name] for name in names)
        return int((pages - free) * size)


def _enough(tasks: list[dict[str, Any]], excess: int) -> int:
    """How many of the first tasks have so many bytes together; all, if all have fewer."""
    for count, row in enumerate(tasks):
        if excess <= 0:
            return count
        excess -= row["bytes"]
    return len(tasks)
