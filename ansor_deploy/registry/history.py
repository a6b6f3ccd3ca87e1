"""Everything that the registry knows about one task: what was tried, and what won."""

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import Any, TypedDict, cast

from ..errors import UsageError
from ..system.json_types import Count, Digest, Ms, Shape, Time
from ..system.run_times import spread
from .database import Database
from .fleet import ranked
from .listing import OF_TARGET
from .record import Record
from .schema import MEASUREMENTS, RECORDS, WORKLOADS, unpacked
from .title import titled

_NAMED = 10  # the most tasks that the message of an ambiguous key names
_KEY = re.compile("[0-9a-f]{4,64}")

_MEANT = f"""
    SELECT key AS workload, op, name, '' AS record, '' AS fingerprint FROM workloads
    WHERE key >= :key AND key < :key || 'g'
    UNION ALL
    SELECT w.key, w.op, w.name, r.id, r.target FROM records AS r JOIN workloads AS w
    ON w.key = r.workload WHERE r.id >= :key AND r.id < :key || 'g'
    LIMIT {_NAMED + 1}
"""
_WORKLOAD = """
    SELECT key, op, name, family, shapes, dtypes, flops, bytes FROM workloads WHERE key = :workload
"""
_MODELS = f"""
    SELECT o.name AS model, o.digest, t.name AS target, t.fingerprint, k.weight
    FROM model_tasks AS k JOIN models AS o ON o.digest = k.model
    JOIN (SELECT * FROM targets WHERE {OF_TARGET}) AS t ON t.fingerprint = k.target
    WHERE k.workload = :workload ORDER BY o.name, o.digest, t.name, t.fingerprint
"""
_RECORDS = f"""
    SELECT s.id, t.name AS target, s.target AS fingerprint, s.tvm, s.lost, s.claimed, s.latency,
        s.created, s.seconds, s.proof, s.provenance, r.trace,
        json_extract(s.provenance, '$.device') AS host
    FROM standings AS s CROSS JOIN records AS r ON r.id = s.id
    JOIN (SELECT * FROM targets WHERE {OF_TARGET}) AS t ON t.fingerprint = s.target
    WHERE s.workload = :workload ORDER BY t.name, s.target, s.tvm
"""
_CONTESTS = """
    SELECT b.winner, b.loser, b.created FROM records AS r JOIN beaten AS b ON b.loser = r.id
    WHERE r.workload = :workload ORDER BY b.created, b.winner, b.loser
"""
_SEARCHES = f"""
    SELECT t.name AS target, t.fingerprint, s.tvm, s.search, s.trials, s.reason, s.enough_for,
        s.created
    FROM searches AS s JOIN targets AS t ON t.fingerprint = s.target
    WHERE s.workload = :workload AND {OF_TARGET} ORDER BY s.created, s.id
"""
_MEASURED = f"""
    FROM targets AS t
    CROSS JOIN measurements AS m ON m.target = t.fingerprint AND m.workload = :workload
    WHERE {OF_TARGET}
"""
_MEASUREMENTS = f"""
    SELECT m.id, t.name AS target, t.fingerprint, m.seconds, m.error, m.message, m.provenance
    {_MEASURED} ORDER BY m.id DESC LIMIT :limit
"""
_TRIALS = f"SELECT count(*) AS trials, coalesce(sum(m.error <> ''), 0) AS failures {_MEASURED}"
_PROGRAM = """
    SELECT r.*, w.text, EXISTS (
        SELECT 1 FROM model_tasks AS k WHERE k.workload = w.key
    ) AS own
    FROM records AS r JOIN workloads AS w ON w.key = r.workload WHERE r.id = :record
"""


class TaskRow(TypedDict):
    """A task, independent of the models that have it."""

    key: Digest
    op: str
    name: str
    family: str
    shapes: list[Shape]
    dtypes: list[str]
    flops: float
    bytes: float
    title: str


class UseRow(TypedDict):
    """A model that has a task."""

    model: str
    digest: Digest
    target: str
    fingerprint: Digest
    weight: Count


class RecordRow(TypedDict):
    """A record of a task. place: its rank for its target and TVM. seconds: the measured times.

    noise: the spread of the middle half of these, as a share of their median. hosts: how many hosts
    have measured its schedule, this record's included; typical_ms: the median of their times, which
    decides its place.
    """

    id: Digest
    target: str
    fingerprint: Digest
    tvm: str
    place: Count
    lost: bool
    claimed: bool
    latency_ms: Ms
    noise: float
    hosts: Count
    typical_ms: Ms
    created: Time
    seconds: list[float]
    proof: dict[str, Any]
    provenance: dict[str, Any]


class ContestRow(TypedDict):
    """Two records that ran in turns."""

    winner: Digest
    loser: Digest
    created: Time


class SearchRow(TypedDict):
    """A search of a task. enough_for: the largest budget, in trials a task, that it satisfies."""

    target: str
    fingerprint: Digest
    tvm: str
    search: str
    trials: Count
    reason: str
    enough_for: float
    created: Time


class TrialRow(TypedDict):
    """A candidate that was tried. error: "" where it was correct; it has a latency_ms then."""

    id: int
    target: str
    fingerprint: Digest
    error: str
    message: str
    latency_ms: Ms | None
    created: Time
    search: str
    device: str
    tvm: str
    seed: int | None


class History(TypedDict):
    """What is known about a task. record: the record that was asked for, if it was one."""

    workload: TaskRow
    record: Digest | None
    models: list[UseRow]
    records: list[RecordRow]
    contests: list[ContestRow]
    searches: list[SearchRow]
    trials: Count
    failures: Count
    measurements: list[TrialRow]


def history(registry: Database, key: str, target: str, limit: int) -> History:
    """What is known about a task.

    key: beginning of a workload's key or of a record's id. target: name or beginning of the
    fingerprint; "" for all. limit: the most records for a target and TVM, the best first, and the
    most measurements, the newest. UsageError where the key fits no task, or several.
    """
    meant = _meant(registry, key)
    of_target = meant["fingerprint"] or target
    values = {"workload": meant["workload"], "target": of_target, "limit": limit}

    def found(sql: str, read: Callable[[Any], Any], name: str = "id") -> list[Any]:
        return [registry.decoded(read, row, name) for row in registry.rows(sql, values)]

    known = {
        "workload": titled(found(_WORKLOAD, WORKLOADS.parsed, "key")[0]),
        "record": meant["record"] or None,
        "models": registry.rows(_MODELS, values),
        "records": list(_records(found(_RECORDS, RECORDS.parsed), limit)),
        "contests": registry.rows(_CONTESTS, values),
        "searches": registry.rows(_SEARCHES, values),
        **registry.rows(_TRIALS, values)[0],
        "measurements": found(_MEASUREMENTS, _measurement)[::-1],
    }
    return cast("History", known)


def program_of(registry: Database, record: str) -> tuple[Record, str]:
    """A record and the text of its task's program. record: its id.

    UsageError if no model of this machine has the task: parsing the text runs it, so only a text
    that was made here may be parsed.
    """
    (row,) = registry.rows(_PROGRAM, {"record": record})
    if registry.is_shared or not row["own"]:
        raise UsageError(
            f"the program of {row['workload'][:12]} may be another's, and is not parsed",
            "plan a model that has this task, in a registry that you alone may write: its "
            "program is then made here",
        )
    text = registry.decoded(lambda row: unpacked(row["text"]), row, "id")
    return registry.noun(RECORDS, row), text


def named(registry: Database, key: str) -> tuple[str, str]:
    """What a key, or its beginning, stands for ("task" or "record"), and the whole key."""
    found = _meant(registry, key)
    return ("record", found["record"]) if found["record"] else ("task", found["workload"])


def _meant(registry: Database, key: str) -> dict[str, Any]:
    if not _KEY.fullmatch(key.lower()):
        hint = "take one from `registry query --json`; its first four digits may suffice"
        raise UsageError(f"{key!r} is no key of a task and no id of a record", hint)
    found = registry.rows(_MEANT, {"key": key.lower()})
    if not found:
        hint = "list what there is: ansor-deploy registry query"
        raise UsageError(f"the registry has no task and no record {key}", hint)
    if len(found) > 1:
        names = [f"{(row['record'] or row['workload'])[:16]} {row['op']}" for row in found[:_NAMED]]
        more = ", ..." if len(found) > _NAMED else ""
        raise UsageError(f"{key} may be {', '.join(names)}{more}", "give more of its digits")
    return found[0]


def _records(rows: list[dict[str, Any]], limit: int) -> Iterator[dict[str, Any]]:
    """The best records for each target and TVM. rows: those of the query `_RECORDS`."""
    for _, several in groupby(rows, itemgetter("fingerprint", "tvm")):
        for place, (row, timed) in enumerate(ranked(several)[:limit], 1):
            shown = {name: row[name] for name in RecordRow.__annotations__ if name in row}
            flags = {"lost": bool(row["lost"]), "claimed": bool(row["claimed"])}
            times = {"latency_ms": row["latency"] * 1e3, "noise": spread(row["seconds"])}
            fleet = {"hosts": timed.hosts, "typical_ms": timed.seconds * 1e3}
            yield {**shown, **flags, "place": place, **times, **fleet}


def _measurement(row: dict[str, Any]) -> dict[str, Any]:
    found = MEASUREMENTS.parsed(row)
    seconds, provenance = found.pop("seconds"), found.pop("provenance")
    latency = median(seconds) * 1e3 if seconds and not row["error"] else None
    where = {name: provenance[name] for name in ("created", "search", "device", "tvm", "seed")}
    return {**found, "latency_ms": latency, **where}
