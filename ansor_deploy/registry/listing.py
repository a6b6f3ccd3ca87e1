"""Lists for people: best records, finished builds, and what a registry holds."""

from collections.abc import Sequence
from typing import Any, TypedDict, cast

from ..system.digest import canonical_json
from ..system.json_types import Bytes, Count, Digest, Ms, Ratio, Shape, Time
from .database import Database
from .record import Build
from .schema import BUILDS, WORKLOADS
from .title import titled


class BestRecord(TypedDict):
    """The best record of a task. trials: measurements of the task."""

    id: Digest
    workload: Digest
    title: str
    op: str
    name: str
    shapes: list[Shape]
    dtypes: list[str]
    latency_ms: Ms
    trials: Count
    target: str
    fingerprint: Digest
    tvm: str
    created: Time


class Query(TypedDict):
    """`registry query --json`."""

    records: list[BestRecord]


class TargetTotals(TypedDict):
    """What a registry holds for a target. cpu: as LLVM calls it."""

    target: str
    fingerprint: Digest
    cpu: str
    cores: Count
    tasks: Count
    records: Count
    measurements: Count
    trials_saved: float | None
    seconds_saved: float | None


class TvmTotals(TypedDict):
    """What a registry holds for a version of TVM."""

    tvm: str
    tasks: Count
    records: Count


class ModelTotals(TypedDict):
    """What a registry knows about a model on a target. covered: how many tasks have a record."""

    model: str
    digest: Digest
    target: str
    fingerprint: Digest
    layers: Count
    tasks: Count
    shared: Count
    covered: Count
    trials: Count
    trials_saved: float
    seconds_saved: float | None


class Disagreeing(TypedDict):
    """A host whose times others contradict, though these agree. ratio: its times to theirs.

    schedules: how many it and at least two others have timed. off: on how many it disagrees.
    """

    host: str
    target: str
    fingerprint: Digest
    schedules: Count
    off: Count
    ratio: Ratio


class Stats(TypedDict):
    """What a registry holds. trials_saved: how many more trials models would need without sharing.

    bytes: size of the file. disagreeing: hosts whose times others of the same kind contradict.
    """

    workloads: Count
    records: Count
    measurements: Count
    failures: Count
    models: Count
    builds: Count
    trials_saved: float
    bytes: Bytes
    per_target: list[TargetTotals]
    per_tvm: list[TvmTotals]
    per_model: list[ModelTotals]
    disagreeing: list[Disagreeing]


# What tasks have cost: `here` are the trials in this registry, `trials` include those of searches
# elsewhere, `models` is how many models have the task. A search that was continued has several
# ends, and each counts all trials so far: so the largest is taken.
SPENT = """
    WITH spent AS (
        SELECT *, max(here, (
            SELECT coalesce(max(s.trials), 0) FROM searches AS s
            WHERE s.workload = k.workload AND s.target = k.target
        )) AS trials
        FROM (
            SELECT workload, target, count(*) AS models, (
                SELECT count(*) FROM measurements AS m
                WHERE m.target = t.target AND m.workload = t.workload
            ) AS here
            FROM model_tasks AS t GROUP BY workload, target
        ) AS k
    ), price AS (
        SELECT target, sum(seconds) / sum(trials) AS seconds
        FROM tunings WHERE trials > 0 GROUP BY target
    )
"""

_COUNTS = """
    SELECT (SELECT count(*) FROM workloads) AS workloads,
        (SELECT count(*) FROM records) AS records,
        (SELECT count(*) FROM measurements) AS measurements,
        (SELECT count(*) FROM measurements WHERE error <> '') AS failures,
        (SELECT count(*) FROM models) AS models, (SELECT count(*) FROM builds) AS builds
"""

# A task that n models share is measured once, here or elsewhere, instead of n times here.
# Each statement gives one list of `Stats`.
_GROUPS = {
    "per_target": f"""
        {SPENT}
        , held AS (
            SELECT target, sum(n) AS records, count(*) AS tasks
            FROM (SELECT target, count(*) AS n FROM records GROUP BY workload, target)
            GROUP BY target
        )
        SELECT name AS target, fingerprint,
            json_extract(json, '$.cpu') AS cpu, json_extract(json, '$.cores') AS cores,
            (SELECT count(*) FROM measurements WHERE target = fingerprint) AS measurements,
            coalesce(h.records, 0) AS records, coalesce(h.tasks, 0) AS tasks,
            coalesce(sum(models * trials - here), 0) AS trials_saved,
            sum(models * trials - here) * p.seconds AS seconds_saved
        FROM targets
        LEFT JOIN held AS h ON h.target = fingerprint
        LEFT JOIN spent AS s ON s.target = fingerprint
        LEFT JOIN price AS p ON p.target = fingerprint
        GROUP BY fingerprint ORDER BY name, fingerprint
    """,
    "per_tvm": """
        SELECT tvm, count(*) AS records, count(DISTINCT workload || target) AS tasks
        FROM records GROUP BY tvm ORDER BY tvm
    """,
    # Models that share a task share its cost equally.
    "per_model": f"""
        {SPENT}
        SELECT m.name AS model, m.digest, t.name AS target, t.fingerprint,
            sum(k.weight) AS layers, count(*) AS tasks, sum(s.models > 1) AS shared,
            sum(EXISTS (
                SELECT 1 FROM records AS r WHERE r.workload = k.workload AND r.target = k.target
            )) AS covered,
            sum(s.trials) AS trials,
            sum(s.trials - 1.0 * s.here / s.models) AS trials_saved,
            sum(s.trials - 1.0 * s.here / s.models) * p.seconds AS seconds_saved
        FROM spent AS s
        JOIN model_tasks AS k ON k.workload = s.workload AND k.target = s.target
        JOIN models AS m ON m.digest = k.model
        JOIN targets AS t ON t.fingerprint = k.target
        LEFT JOIN price AS p ON p.target = k.target
        GROUP BY m.digest, t.fingerprint
        ORDER BY m.name, m.digest, t.name, t.fingerprint
    """,
}

_FASTEST = """
    SELECT id FROM {} WHERE workload = k.workload AND target = k.target AND tvm = {} {}
    ORDER BY claimed, latency, id LIMIT 1
"""


def best_of(tvm: str) -> str:
    """SQL of the best record of a key `k` and a version of TVM.

    It finds the same record as the view `best_records`, which would read every key.
    """
    unbeaten = _FASTEST.format("standings", tvm, "AND NOT lost")
    return f"coalesce(({unbeaten}), ({_FASTEST.format('records', tvm, '')}))"


_LISTED = """
    SELECT r.id, w.op, w.name, w.shapes, w.dtypes, r.latency * 1e3 AS latency_ms,
        (SELECT count(*) FROM measurements AS m
         WHERE m.target = r.target AND m.workload = r.workload) AS trials,
        t.name AS target, r.tvm, r.created, r.workload, r.target AS fingerprint
    FROM ({found}) AS f
    CROSS JOIN records AS r ON r.id = f.id
    JOIN workloads AS w ON w.key = r.workload
    JOIN targets AS t ON t.fingerprint = r.target
    ORDER BY r.created DESC, r.id
"""

_FOUND = """
    SELECT r.id
    FROM (SELECT DISTINCT workload, target, tvm FROM records AS a WHERE {where}) AS k
    CROSS JOIN records AS r ON r.id = {best}
    WHERE r.created >= :since ORDER BY r.created DESC, r.id LIMIT :limit
"""

# Conditions on a name or the beginning of a digest; an empty one matches all.
OF_TARGET = "(name = :target OR substr(fingerprint, 1, length(:target)) = :target)"
OF_MODEL = """
    (name IN (:model, :model || '.onnx') OR substr(digest, 1, length(:model)) = :model)
"""

_CONDITIONS = {
    "op": "a.workload IN (SELECT key FROM workloads WHERE op = :op)",
    "target": f"a.target IN (SELECT fingerprint FROM targets WHERE {OF_TARGET})",
    "model": f"""(a.workload, a.target) IN (
        SELECT k.workload, k.target
        FROM model_tasks AS k JOIN models AS o ON o.digest = k.model WHERE {OF_MODEL}
    )""",
}
_HAS_SHAPE = "a.workload IN (SELECT key FROM workloads WHERE instr(shapes, :{}))"


_TARGETS = "SELECT fingerprint, name FROM targets ORDER BY name, fingerprint"
_BUILDS = "SELECT * FROM builds ORDER BY created DESC, id DESC LIMIT ?"

_BUILDS_OF = """
    SELECT b.*, t.name AS target_name
    FROM builds AS b LEFT JOIN targets AS t ON t.fingerprint = b.target
    WHERE b.name IN (:model, :model || '.onnx') OR substr(b.model, 1, length(:model)) = :model
    ORDER BY b.created DESC, b.id DESC LIMIT :limit
"""


class Listing(Database):
    """Lists for people, as JSON objects."""

    def target_names(self) -> dict[str, str]:
        """The name of each target, by its fingerprint."""
        return {row["fingerprint"]: row["name"] for row in self.rows(_TARGETS)}

    def query(
        self,
        op: str | None = None,
        target: str | None = None,
        model: str | None = None,
        since: str | None = None,
        shapes: Sequence[Sequence[int]] = (),
        limit: int = 100,
    ) -> list[BestRecord]:
        """The best record of each task and TVM version, the newest first.

        target, model: name, or beginning of the fingerprint or digest. since: ISO 8601, UTC.
        shapes: the task must have a tensor of each of these shapes.
        """
        given = {"op": op, "target": target, "model": model}
        values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        where = ["TRUE", *(_CONDITIONS[name] for name in values)]
        # In canonical JSON, a shape's text with its brackets is part of the list's text.
        wanted = {f"shape{number}": canonical_json(shape) for number, shape in enumerate(shapes)}
        where += [_HAS_SHAPE.format(name) for name in wanted]
        found = _FOUND.format(where=" AND ".join(where), best=best_of("k.tvm"))
        values |= {**wanted, "since": since or "", "limit": limit}
        rows = self.rows(_LISTED.format(found=found), values)
        return [self.decoded(lambda row: titled(WORKLOADS.parsed(row)), row, "id") for row in rows]

    def builds(self, limit: int = 100) -> list[Build]:
        """Finished builds, the newest first."""
        return self.nouns(BUILDS, _BUILDS, (limit,))

    def builds_of(self, model: str, limit: int) -> list[dict[str, Any]]:
        """Finished builds of a model, the newest first, with its targets' names.

        model: name, with or without .onnx, or beginning of the digest; "" for all.
        """
        rows = self.rows(_BUILDS_OF, {"model": model, "limit": limit})
        return [self.decoded(BUILDS.parsed, row, "id") for row in rows]

    def stats(self) -> Stats:
        """What the registry holds."""
        from .fleet import SHARED, disagreeing  # imported here, since no build needs it

        (counts,) = self.rows(_COUNTS)
        size = self.path.stat().st_size if self.path.exists() else 0
        groups = {name: self.rows(sql) for name, sql in _GROUPS.items()}
        saved = sum(row["trials_saved"] for row in groups["per_target"])
        known = {**counts, "trials_saved": saved, "bytes": size, **groups}
        return cast("Stats", {**known, "disagreeing": disagreeing(self.rows(SHARED))})
