"""The SQL of what a person asks the registry; `store` has the SQL of what a build asks."""

from __future__ import annotations

from typing import Any

# The index has all that the order needs, so that only the rows that are asked for are read.
TOP = """
    SELECT r.* FROM (
        SELECT id, lost, latency FROM standings WHERE workload = ? AND target = ? AND tvm = ?
        ORDER BY lost, latency, id LIMIT ?
    ) AS best
    CROSS JOIN records AS r ON r.id = best.id ORDER BY best.lost, best.latency, best.id
"""

# Tuned, not only looked at; and part of a model that was read here, which made the same text: what
# others say of a workload is no reason to run it.
RELATIVES = """
    SELECT w.* FROM workloads AS w
    WHERE w.family IN (SELECT value FROM json_each(:families))
    AND EXISTS (SELECT 1 FROM model_tasks AS k WHERE k.workload = w.key)
    AND EXISTS (
        SELECT 1 FROM searches AS s
        WHERE s.workload = w.key AND s.target = :target AND s.tvm = :tvm
        AND (s.trials > 1 OR s.reason = 'locked')
    )
    AND EXISTS (
        SELECT 1 FROM records AS r
        WHERE r.workload = w.key AND r.target = :target AND r.tvm = :tvm
    )
    ORDER BY w.key
"""

SECONDS_PER_TRIAL = """
    SELECT total(seconds) AS seconds, total(trials) AS trials
    FROM tunings WHERE target = ? AND trials > 0
"""

COUNTS = {
    "workloads": "SELECT count(*) AS n FROM workloads",
    "records": "SELECT count(*) AS n FROM records",
    "measurements": "SELECT count(*) AS n FROM measurements",
    "failures": "SELECT count(*) AS n FROM measurements WHERE error <> ''",
    "models": "SELECT count(*) AS n FROM models",
    "builds": "SELECT count(*) AS n FROM builds",
    # A task that n models share is measured once instead of n times.
    "trials_saved": """
        SELECT coalesce(sum((models - 1) * (
            SELECT count(*) FROM measurements AS m
            WHERE m.target = shared.target AND m.workload = shared.workload
        )), 0) AS n
        FROM (
            SELECT workload, target, count(*) AS models FROM model_tasks
            GROUP BY workload, target HAVING models > 1
        ) AS shared
    """,
}

GROUPS = {
    "per_target": """
        SELECT name AS target, fingerprint,
            (SELECT count(*) FROM measurements WHERE target = fingerprint) AS measurements,
            (SELECT count(*) FROM records WHERE target = fingerprint) AS records,
            (SELECT count(DISTINCT workload) FROM records WHERE target = fingerprint) AS tasks
        FROM targets ORDER BY name, fingerprint
    """,
    "per_model": """
        SELECT m.name AS model, m.digest, t.name AS target, c.tasks, c.covered
        FROM model_coverage AS c
        JOIN models AS m ON m.digest = c.model
        JOIN targets AS t ON t.fingerprint = c.target
        ORDER BY m.name, m.digest, t.name, t.fingerprint
    """,
}

# Ids of rows that no build asks for. All that were beaten go at once: a loser that outlived the
# one that beat it would be the best again.
SURPLUS = {
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

DROP = {
    "records": (
        "DELETE FROM beaten WHERE loser = ?",
        "DELETE FROM beaten WHERE winner = ?",
        "DELETE FROM records WHERE id = ?",
    ),
    "builds": ("DELETE FROM builds WHERE id = ?",),
}

_BEST = """
    SELECT r.id, w.op, w.name, w.shapes, w.dtypes, r.latency * 1e3 AS latency_ms,
        (SELECT count(*) FROM measurements AS m
         WHERE m.target = r.target AND m.workload = r.workload) AS trials,
        t.name AS target, r.tvm, r.created, r.workload, r.target AS fingerprint
    FROM best_records AS r
    JOIN workloads AS w ON w.key = r.workload
    JOIN targets AS t ON t.fingerprint = r.target
"""

_CONDITIONS = {
    "op": "w.op = :op",
    "target": "(t.name = :target OR substr(r.target, 1, length(:target)) = :target)",
    "model": """EXISTS (
        SELECT 1 FROM model_tasks AS k JOIN models AS o ON o.digest = k.model
        WHERE k.workload = r.workload AND k.target = r.target
        AND (o.name = :model OR substr(o.digest, 1, length(:model)) = :model)
    )""",
    "since": "r.created >= :since",
}


def best_records(
    op: str | None, target: str | None, model: str | None, since: str | None, limit: int
) -> tuple[str, dict[str, Any]]:
    """The statement and its values that list the best records which meet every condition."""
    given = {"op": op, "target": target, "model": model, "since": since}
    values = {name: value for name, value in given.items() if value is not None}
    where = " AND ".join(_CONDITIONS[name] for name in values)
    order = "ORDER BY r.created DESC, r.id LIMIT :limit"
    return f"{_BEST} {'WHERE ' + where if where else ''} {order}", {**values, "limit": limit}
