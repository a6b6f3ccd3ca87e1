"""The queries of plans and searches. They parse no trace and load no compiler."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..system.digest import canonical_json
from ..target import Target, are_alike
from .database import Database
from .record import Measurement, Record, SearchEnd, TaskKey, Workload
from .schema import MEASUREMENTS, RECORDS, SEARCHES, WORKLOADS

if TYPE_CHECKING:
    from .fleet import Timed

FEW = 3  # how many of the best records of each version count; the next are hardly the best now
UNFIT = "build"  # the error of a measurement whose trace could not be compiled
_KNOWN = 256  # the most records of this version that are read

# The index has every column that the order needs, so that only the rows asked for are read.
TOP = """
    SELECT r.* FROM (
        SELECT id, claimed, lost, latency FROM standings
        WHERE workload = ? AND target = ? AND tvm = ? ORDER BY claimed, lost, latency, id LIMIT ?
    ) AS best
    CROSS JOIN records AS r ON r.id = best.id
    ORDER BY best.claimed, best.lost, best.latency, best.id
"""
_CLAIMS = """
    SELECT r.* FROM (
        SELECT id, latency FROM standings
        WHERE workload = ? AND target = ? AND tvm = ? AND claimed AND NOT lost AND latency < ?
        ORDER BY latency, id LIMIT ?
    ) AS best
    CROSS JOIN records AS r ON r.id = best.id ORDER BY best.latency, best.id
"""
# Whether several hosts have measured a key.
_SEVERAL = """
    SELECT 1 FROM records WHERE workload = ? AND target = ? AND tvm = ? GROUP BY claimed
    HAVING min(json_extract(provenance, '$.device')) <> max(json_extract(provenance, '$.device'))
"""
_BY_HOST = """
    SELECT s.id, s.claimed, s.lost, s.latency, r.trace,
        json_extract(r.provenance, '$.device') AS host
    FROM standings AS s CROSS JOIN records AS r ON r.id = s.id
    WHERE s.workload = ? AND s.target = ? AND s.tvm = ?
"""
_FASTEST_CLAIM = """
    SELECT min(latency) AS seconds FROM records
    WHERE workload = ? AND target = ? AND tvm = ? AND claimed
"""
_OF_KEY = "target = ? AND workload = ?"
_TRIALS = f"SELECT count(*) AS n FROM measurements WHERE {_OF_KEY}"  # noqa: S608
_UNFIT = f"SELECT * FROM measurements WHERE {_OF_KEY} AND error = '{UNFIT}'"  # noqa: S608
_ENDS = f"SELECT * FROM searches WHERE {_OF_KEY} ORDER BY id"  # noqa: S608
_RANKING = """
    SELECT tvm, id, lost FROM standings WHERE workload = ? AND target = ?
    ORDER BY tvm, claimed, lost, latency, id
"""
_OUTDATED = """
    SELECT count(*) AS n FROM (
        SELECT 1 FROM records GROUP BY workload, target HAVING NOT sum(tvm = ?)
    )
"""
# Workloads that were really tuned, and that a model on this machine has, so that their text was
# made here: a text of others must not be run.
_RELATIVES = """
    SELECT w.* FROM workloads AS w
    WHERE w.family IN (SELECT value FROM json_each(:families))
    AND EXISTS (SELECT 1 FROM model_tasks AS k WHERE k.workload = w.key)
    AND EXISTS (
        SELECT 1 FROM searches AS s
        WHERE s.workload = w.key AND s.target = :target AND s.tvm = :tvm
        AND (s.trials > 1 OR s.reason IN ('locked', 'revalidated'))
    )
    AND EXISTS (
        SELECT 1 FROM records AS r
        WHERE r.workload = w.key AND r.target = :target AND r.tvm = :tvm
    )
    ORDER BY w.key
"""
# Only with more than one measurement, so that there is something to compare.
_ALIKE = """
    SELECT w.* FROM workloads AS w
    WHERE w.op = :op AND w.key <> :key AND (
        SELECT count(*) FROM measurements AS m WHERE m.target = :target AND m.workload = w.key
    ) > 1
    ORDER BY w.family <> :family, max(w.flops / :flops, :flops / w.flops), w.key LIMIT :count
"""
_SECONDS_PER_TRIAL = """
    SELECT total(seconds) / total(trials) AS seconds FROM tunings WHERE target = ? AND trials > 0
"""


class Lookups(Database):
    """Queries about tasks."""

    def best(self, keys: Iterable[TaskKey], tvm: str) -> dict[TaskKey, Record]:
        """The best record of each key that has one: the fastest that no other has beaten.

        A claim counts only where nothing was measured here. tvm: the version that made the record;
        traces of other versions need not replay.
        """
        found = ((key, self.top(key, tvm, 1)) for key in dict.fromkeys(keys))
        return {key: records[0] for key, records in found if records}

    def top(self, key: TaskKey, tvm: str, count: int) -> list[Record]:
        """Up to `count` records of a key made with this version of TVM, the best first.

        Records measured here come before claims of others, and within each, beaten records come
        last. Otherwise the smallest latency comes first: the median over all hosts that have
        measured the schedule.
        """
        values = (key.workload, key.target, tvm)
        if self.rows(_SEVERAL, values):
            return self._records([row["id"] for row, _ in self._ranked(values)][:count])
        return self.nouns(RECORDS, TOP, (*values, count))

    def _ranked(self, values: Sequence[str]) -> list[tuple[Mapping[str, Any], Timed]]:
        from .fleet import ranked

        return ranked(self.rows(_BY_HOST, values))

    def _records(self, names: Sequence[str]) -> list[Record]:
        """The records of these ids, in their order."""
        sql = "SELECT * FROM records WHERE id IN (SELECT value FROM json_each(?))"
        found = {one.id: one for one in self.nouns(RECORDS, sql, (canonical_json(list(names)),))}
        return [found[name] for name in names]

    def claims(self, key: TaskKey, tvm: str, below: float, count: int) -> list[Record]:
        """Up to `count` unbeaten claims for a key, the best first.

        below: seconds; slower ones are left out, by the median of the hosts that claim them.
        """
        values = (key.workload, key.target, tvm)
        if self.rows(_SEVERAL, values):
            ranked = [(row, timed) for row, timed in self._ranked(values) if timed.seconds < below]
            claims = [row["id"] for row, _ in ranked if row["claimed"] and not row["lost"]]
            return self._records(claims[:count])
        return self.nouns(RECORDS, _CLAIMS, (*values, below, count))

    def fastest_claim(self, key: TaskKey, tvm: str) -> float:
        """Seconds of the fastest claim for a key, beaten or not; infinity where there is none."""
        seconds = self.rows(_FASTEST_CLAIM, (key.workload, key.target, tvm))[0]["seconds"]
        return math.inf if seconds is None else float(seconds)

    def trials(self, keys: Iterable[TaskKey]) -> dict[TaskKey, int]:
        """How many measurements each key has, failures of candidates included, or 0."""
        return {key: self.rows(_TRIALS, (key.target, key.workload))[0]["n"] for key in keys}

    def measurements(self, target: str, key: TaskKey | None = None) -> Iterator[Measurement]:
        """Every measurement of a target's fingerprint, or of one of its keys, oldest first."""
        if key is not None:
            rows = self.walk("measurements", _OF_KEY, (target, key.workload))
            return (self.noun(MEASUREMENTS, row) for row in rows)
        # The table is walked in its own order: an index would need sorting. These traces are never
        # replayed, so in a shared file they are not checked either.
        rows = self.walk("measurements NOT INDEXED", "target = ?", (target,))
        return (self.decoded(MEASUREMENTS.read, row, "id") for row in rows)

    def unfit(self, key: TaskKey) -> set[str]:
        """The traces of a key that could not be compiled."""
        found = self.nouns(MEASUREMENTS, _UNFIT, (key.target, key.workload))
        return {one.trace for one in found}

    def ends(self, key: TaskKey) -> list[SearchEnd]:
        """The ends of a key's searches, under every version of TVM, the earliest first."""
        return self.nouns(SEARCHES, _ENDS, (key.target, key.workload))

    def ranking(self, key: TaskKey) -> list[tuple[str, str, bool]]:
        """Each record of a key: its version of TVM, its id, and whether another one has beaten it.

        The records of a version are adjacent, the best first.
        """
        rows = self.rows(_RANKING, (key.workload, key.target))
        return [(row["tvm"], row["id"], bool(row["lost"])) for row in rows]

    def outdated(self, tvm: str) -> int:
        """How many keys have records, but none of this version of TVM."""
        return int(self.rows(_OUTDATED, (tvm,))[0]["n"])

    def stale(self, key: TaskKey, tvm: str, most: int = FEW) -> list[Record]:
        """A key's records of other versions of TVM that this one has not tried.

        TVM changes what its instructions do from release to release. So such a record is never used
        as it is, but it is a good guess, and `tune.sources.past` tries it. The best of each version
        come first. most: how many records of each version are read; traces that were measured with
        this version already, successfully or not, are left out.
        """
        others = {version for version, _, _ in self.ranking(key)} - {tvm}
        if not others:
            return []
        measured = self.measurements(key.target, key)
        tried = {one.trace for one in measured if one.provenance.tvm == tvm}
        tried |= {record.trace for record in self.top(key, tvm, _KNOWN)}
        ranked = [
            (rank, record.latency, record.id, record)
            for version in others
            for rank, record in enumerate(self.top(key, version, most))
            if record.trace not in tried
        ]
        found: dict[str, Record] = {}
        for *_, record in sorted(ranked):
            found.setdefault(record.trace, record)
        return list(found.values())

    def known(self, keys: Iterable[TaskKey]) -> set[TaskKey]:
        """The keys whose workload is in the registry."""
        sql = "SELECT 1 FROM workloads WHERE key = ?"
        return {key for key in keys if self.rows(sql, (key.workload,))}

    def workloads(self, keys: Iterable[TaskKey]) -> dict[str, Workload]:
        """The workloads of these tasks that are known, by their keys."""
        names = canonical_json(sorted({key.workload for key in keys}))
        sql = "SELECT * FROM workloads WHERE key IN (SELECT value FROM json_each(?))"
        return {one.key: one for one in self.nouns(WORKLOADS, sql, (names,))}

    def relatives(self, families: Sequence[str], target: str, tvm: str) -> list[Workload]:
        """Workloads of these families that were tuned for a target, by a search that has ended.

        Only those that a model of this machine has, so that their texts were made here; none where
        others may write to the registry.
        """
        if self.is_shared:
            return []
        values = {"families": canonical_json(list(families)), "target": target, "tvm": tvm}
        return self.nouns(WORKLOADS, _RELATIVES, values)

    def like(self, target: Target) -> list[Target]:
        """The other known targets that differ from this one in cores and caches alone.

        A target that others have sent lacks the figures of the roofline, and gets this one's.
        """
        sql = "SELECT * FROM targets WHERE fingerprint <> ? ORDER BY fingerprint"
        rows = self.rows(sql, (target.fingerprint,))
        read = partial(_like, target=target)
        found: list[Target] = [self.decoded(read, row, "fingerprint") for row in rows]
        return [one for one in found if are_alike(one, target)]

    def alike(self, workload: Workload, target: str, count: int) -> list[Workload]:
        """Other measured workloads of its operator: first its family, then by similar FLOPs."""
        return self.nouns(WORKLOADS, _ALIKE, {**vars(workload), "target": target, "count": count})

    def seconds_per_trial(self, target: str) -> float | None:
        """Mean wall-clock seconds of one trial on a target's fingerprint; None if never tuned."""
        found: float | None = self.rows(_SECONDS_PER_TRIAL, (target,))[0]["seconds"]
        return found


def _like(row: Mapping[str, Any], target: Target) -> Target:
    figures = {name: getattr(target, name) for name in ("peak_gflops", "memory_gbs")}
    return Target.from_json({**figures, **json.loads(row["json"]), "name": row["name"]})
