"""All that the registry knows of one task: what was tried, what won, and who says so."""

from __future__ import annotations

import json
import re
from contextlib import closing, contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .connect import connect
from .faults import decoding, explained
from .queries import OF_TARGET
from .rows import record_of, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .record import Record

    Ask = Callable[[str, dict[str, Any]], list[dict[str, Any]]]

_NAMED = 10  # tasks that an ambiguous key may mean, in the message
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
    SELECT o.name AS model, o.digest, t.name AS target, k.weight
    FROM model_tasks AS k JOIN models AS o ON o.digest = k.model
    JOIN (SELECT * FROM targets WHERE {OF_TARGET}) AS t ON t.fingerprint = k.target
    WHERE k.workload = :workload ORDER BY o.name, o.digest, t.name
"""
_RECORDS = f"""
    SELECT r.id, t.name AS target, r.target AS fingerprint, r.tvm, r.place, r.lost,
        r.latency * 1e3 AS latency_ms, r.created, r.seconds, r.proof, r.provenance
    FROM (
        SELECT *, row_number() OVER (
            PARTITION BY target, tvm ORDER BY lost, latency, id
        ) AS place
        FROM standings WHERE workload = :workload
    ) AS r
    JOIN (SELECT * FROM targets WHERE {OF_TARGET}) AS t ON t.fingerprint = r.target
    WHERE r.place <= :limit ORDER BY t.name, r.target, r.tvm, r.place
"""
_CONTESTS = """
    SELECT b.winner, b.loser, b.created FROM records AS r JOIN beaten AS b ON b.loser = r.id
    WHERE r.workload = :workload ORDER BY b.created, b.winner, b.loser
"""
_SEARCHES = f"""
    SELECT t.name AS target, s.tvm, s.search, s.trials, s.reason, s.enough_for, s.created
    FROM searches AS s JOIN targets AS t ON t.fingerprint = s.target
    WHERE s.workload = :workload AND {OF_TARGET} ORDER BY s.created, s.id
"""
_MEASUREMENTS = f"""
    SELECT m.id, t.name AS target, m.seconds, m.error, m.message, m.provenance
    FROM targets AS t
    CROSS JOIN measurements AS m ON m.target = t.fingerprint AND m.workload = :workload
    WHERE {OF_TARGET} ORDER BY m.id DESC LIMIT :limit
"""
_TRIALS = f"""
    SELECT count(*) AS trials, coalesce(sum(m.error <> ''), 0) AS failures
    FROM targets AS t
    CROSS JOIN measurements AS m ON m.target = t.fingerprint AND m.workload = :workload
    WHERE {OF_TARGET}
"""


@contextmanager
def asking(path: Path) -> Iterator[Ask]:
    """A function from a question in SQL to its rows; RegistryError as `Registry` raises it."""
    with explained(path), closing(connect(path, write=False)) as connection:

        def ask(sql: str, values: dict[str, Any]) -> list[dict[str, Any]]:
            cursor = connection.execute(sql, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

        yield ask


def history(path: Path, key: str, target: str, limit: int) -> dict[str, Any]:
    """What is known of a task, as one JSON object.

    key: beginning of a workload's key or of a record's id. target: name or beginning of the
    fingerprint; "" for all. limit: most records of a target and TVM, the best first, and most
    measurements, the newest.

    Raises:
        UsageError: the key is of no task, or of several.
    """
    with asking(path) as ask:
        meant = _meant(ask, key)
        values = {
            "workload": meant["workload"],
            "target": meant["fingerprint"] or target,
            "limit": limit,
        }
        with decoding(path, meant["workload"]):
            (workload,) = map(_parsed, ask(_WORKLOAD, values))
            return {
                "workload": workload,
                "record": meant["record"] or None,
                "models": ask(_MODELS, values),
                "records": [_record(row) for row in ask(_RECORDS, values)],
                "contests": ask(_CONTESTS, values),
                "searches": ask(_SEARCHES, values),
                **ask(_TRIALS, values)[0],
                "measurements": [_measurement(row) for row in reversed(ask(_MEASUREMENTS, values))],
            }


def program_of(path: Path, record: str) -> tuple[Record, str]:
    """A record and the text of its task's program. record: its id.

    UsageError if no model of this machine has the task: the text runs when it is parsed, so that
    only what was made here may be.
    """
    sql = """
        SELECT r.*, w.text, EXISTS (
            SELECT 1 FROM model_tasks AS k WHERE k.workload = w.key
        ) AS own
        FROM records AS r JOIN workloads AS w ON w.key = r.workload WHERE r.id = :record
    """
    with asking(path) as ask:
        (row,) = ask(sql, {"record": record})
        if not row["own"]:
            raise UsageError(
                f"the program of {row['workload'][:12]} came from elsewhere, and is not parsed",
                "Plan a model that has this task: its program is then made here.",
            )
        with decoding(path, record):
            return record_of(row), unpacked(row["text"])


def _meant(ask: Ask, key: str) -> dict[str, Any]:
    if not _KEY.fullmatch(key.lower()):
        hint = "Take one from `registry query --json`; its first four digits may suffice."
        raise UsageError(f"{key!r} is no key of a task and no id of a record", hint)
    found = ask(_MEANT, {"key": key.lower()})
    if not found:
        hint = "List what there is: ansor-deploy registry query"
        raise UsageError(f"the registry has no task and no record {key}", hint)
    if len(found) > 1:
        names = [f"{(row['record'] or row['workload'])[:16]} {row['op']}" for row in found[:_NAMED]]
        more = ", ..." if len(found) > _NAMED else ""
        raise UsageError(f"{key} may be {', '.join(names)}{more}", "Give more of its digits.")
    return found[0]


def _record(row: dict[str, Any]) -> dict[str, Any]:
    return {**_parsed(row), "lost": bool(row["lost"])}


def _measurement(row: dict[str, Any]) -> dict[str, Any]:
    parsed = _parsed(row)
    seconds = parsed.pop("seconds")
    latency = median(seconds) * 1e3 if seconds and not row["error"] else None
    provenance = parsed.pop("provenance")
    where = {name: provenance[name] for name in ("created", "search", "device", "tvm", "seed")}
    return {**parsed, "latency_ms": latency, **where}


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its JSON as values."""
    texts = {"shapes", "dtypes", "seconds", "proof", "provenance"} & set(row)
    return {**row, **{name: json.loads(row[name]) for name in texts}}
