"""The registry's schema, as the steps that lead to it. Steps are only ever added.

Loaded by path, and only when a registry has to be created or brought up to date. A step sets
`user_version` to its own number; `ansor_deploy.registry.connect.SCHEMA_VERSION` is the last one.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

migrations = Migrations("ansor-deploy")

_TABLES = (
    """
    CREATE TABLE workloads (
        key TEXT PRIMARY KEY,       -- SHA-256 of the text
        op TEXT NOT NULL,
        name TEXT NOT NULL,
        family TEXT NOT NULL,
        shapes TEXT NOT NULL,       -- JSON
        dtypes TEXT NOT NULL,       -- JSON
        flops REAL NOT NULL,
        bytes REAL NOT NULL,
        text BLOB NOT NULL          -- zlib
    ) STRICT
    """,
    """
    CREATE TABLE targets (
        fingerprint TEXT PRIMARY KEY,
        name TEXT NOT NULL,         -- as last declared: names are not identity
        json TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE measurements (
        id INTEGER PRIMARY KEY,
        workload TEXT NOT NULL REFERENCES workloads (key),
        target TEXT NOT NULL REFERENCES targets (fingerprint),
        seconds TEXT NOT NULL,      -- JSON
        error TEXT NOT NULL,        -- '' or a kind of error
        message TEXT NOT NULL,
        provenance TEXT NOT NULL,   -- JSON
        trace BLOB NOT NULL,        -- zlib
        features BLOB               -- as search/features.py encodes them; NULL if unknown
    ) STRICT
    """,
    """
    CREATE TABLE records (
        id TEXT PRIMARY KEY,        -- SHA-256 of the record's canonical JSON
        workload TEXT NOT NULL REFERENCES workloads (key),
        target TEXT NOT NULL REFERENCES targets (fingerprint),
        tvm TEXT NOT NULL,
        latency REAL NOT NULL CHECK (latency > 0),  -- median, seconds
        created TEXT NOT NULL,      -- ISO 8601, UTC
        seconds TEXT NOT NULL,      -- JSON
        proof TEXT NOT NULL,        -- JSON
        provenance TEXT NOT NULL,   -- JSON
        trace BLOB NOT NULL         -- zlib
    ) STRICT
    """,
    """
    CREATE TABLE models (
        digest TEXT PRIMARY KEY,    -- SHA-256 of the model file
        name TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE model_tasks (
        model TEXT NOT NULL REFERENCES models (digest),
        workload TEXT NOT NULL REFERENCES workloads (key),
        target TEXT NOT NULL REFERENCES targets (fingerprint),
        weight INTEGER NOT NULL CHECK (weight > 0),
        PRIMARY KEY (model, workload, target)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE builds (
        id INTEGER PRIMARY KEY,
        artifact TEXT NOT NULL,     -- path
        model TEXT NOT NULL REFERENCES models (digest),
        target TEXT NOT NULL REFERENCES targets (fingerprint),
        created TEXT NOT NULL,      -- ISO 8601, UTC
        manifest TEXT NOT NULL      -- JSON
    ) STRICT
    """,
    """
    CREATE TABLE tunings (
        id INTEGER PRIMARY KEY,
        target TEXT NOT NULL REFERENCES targets (fingerprint),
        search TEXT NOT NULL,
        trials INTEGER NOT NULL CHECK (trials >= 0),
        seconds REAL NOT NULL CHECK (seconds >= 0),  -- wall clock
        created TEXT NOT NULL       -- ISO 8601, UTC
    ) STRICT
    """,
    """
    CREATE TABLE searches (
        id INTEGER PRIMARY KEY,
        workload TEXT NOT NULL REFERENCES workloads (key),
        target TEXT NOT NULL REFERENCES targets (fingerprint),
        tvm TEXT NOT NULL,
        search TEXT NOT NULL,
        trials INTEGER NOT NULL CHECK (trials >= 0),
        reason TEXT NOT NULL,       -- why it ended
        enough_for INTEGER NOT NULL, -- trials a task below which nothing is left to do
        created TEXT NOT NULL       -- ISO 8601, UTC
    ) STRICT
    """,
)

_INDEXES = (
    # "Is this task tuned, and how well?": one probe, the smallest latency first.
    "CREATE INDEX records_best ON records (workload, target, tvm, latency, id)",
    "CREATE INDEX measurements_of ON measurements (target, workload)",
    "CREATE INDEX searches_of ON searches (workload, target, tvm, enough_for)",
    "CREATE INDEX workloads_op ON workloads (op)",
    "CREATE INDEX model_tasks_of ON model_tasks (workload, target)",
)

_VIEWS = (
    """
    CREATE VIEW best_records AS
    SELECT * FROM records AS r
    WHERE id = (
        SELECT id FROM records
        WHERE workload = r.workload AND target = r.target AND tvm = r.tvm
        ORDER BY latency, id LIMIT 1
    )
    """,
    """
    CREATE VIEW model_coverage AS
    SELECT model, target, count(*) AS tasks, sum(EXISTS (
        SELECT 1 FROM records AS r WHERE r.workload = t.workload AND r.target = t.target
    )) AS covered
    FROM model_tasks AS t GROUP BY model, target
    """,
)

_GUARD = """
    CREATE TRIGGER records_are_immutable BEFORE UPDATE ON records
    BEGIN SELECT raise(ABORT, 'records are immutable'); END
"""


@migrations(name="0001_first")
def first(db: Database) -> None:
    """Create the tables, indexes and views of version 1."""
    for statement in (*_TABLES, *_INDEXES, *_VIEWS, _GUARD):
        db.execute(statement)
    db.execute("PRAGMA user_version = 1")


_CONTESTS = (
    """
    CREATE TABLE beaten (           -- in a paired comparison, or tied with what was there before
        loser TEXT NOT NULL REFERENCES records (id),
        winner TEXT NOT NULL REFERENCES records (id) CHECK (winner <> loser),
        PRIMARY KEY (loser, winner)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX beaten_by ON beaten (winner)",
    # Which records another one of the same workload, target and TVM has beaten. CROSS JOIN keeps
    # SQLite from looking through all records of a task for each of them.
    """
    CREATE VIEW standings AS
    SELECT *, EXISTS (
        SELECT 1 FROM beaten AS b CROSS JOIN records AS w
        WHERE b.loser = r.id AND w.id = b.winner
        AND w.workload = r.workload AND w.target = r.target AND w.tvm = r.tvm
    ) AS lost
    FROM records AS r
    """,
    "DROP VIEW best_records",
    """
    CREATE VIEW best_records AS
    SELECT r.* FROM (SELECT DISTINCT workload, target, tvm FROM records) AS k
    JOIN records AS r ON r.id = (
        SELECT id FROM standings
        WHERE workload = k.workload AND target = k.target AND tvm = k.tvm
        ORDER BY lost, latency, id LIMIT 1
    )
    """,
)

_LEASES = (
    """
    CREATE TABLE holders (          -- processes that are tuning
        token TEXT PRIMARY KEY,     -- random
        host TEXT NOT NULL,         -- for messages only
        boot TEXT NOT NULL,         -- the kernel's boot id, '' if unknown
        space TEXT NOT NULL,        -- the PID namespace, '' if unknown
        pid INTEGER NOT NULL,
        started INTEGER NOT NULL,   -- clock ticks from boot to the process's start
        beat INTEGER NOT NULL       -- how often it has said that it is there
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE leases (           -- what each of them is tuning
        workload TEXT NOT NULL,
        target TEXT NOT NULL,
        holder TEXT NOT NULL REFERENCES holders (token) ON DELETE CASCADE,
        PRIMARY KEY (workload, target)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX leases_of ON leases (holder)",
)


@migrations(name="0002_contests_and_leases")
def contests_and_leases(db: Database) -> None:
    """Add who has beaten whom, and who is tuning what."""
    for statement in (*_CONTESTS, *_LEASES):
        db.execute(statement)
    db.execute("PRAGMA user_version = 2")


_DATED_CONTESTS = (
    "ALTER TABLE beaten ADD COLUMN created TEXT NOT NULL DEFAULT ''",  # ISO 8601, UTC
    # Both records were there by then.
    """
    UPDATE beaten
    SET created = coalesce(
        (SELECT max(r.created) FROM records AS r WHERE r.id IN (loser, winner)), created
    )
    """,
    "DROP VIEW standings",
    "DROP VIEW best_records",
    # As before, but that of two comparisons with opposite ends the later counts, and neither if
    # they are of the same time: whichever is heard of first, here or from another registry.
    # No view has traces: people look at views.
    """
    CREATE VIEW standings AS
    SELECT id, workload, target, tvm, latency, created, seconds, proof, provenance, EXISTS (
        SELECT 1 FROM beaten AS b CROSS JOIN records AS w
        WHERE b.loser = r.id AND w.id = b.winner
        AND w.workload = r.workload AND w.target = r.target AND w.tvm = r.tvm
        AND NOT EXISTS (
            SELECT 1 FROM beaten AS o
            WHERE o.loser = b.winner AND o.winner = b.loser AND o.created >= b.created
        )
    ) AS lost
    FROM records AS r
    """,
    # The first that was not beaten, mostly the first of all, ends the search for the best.
    """
    CREATE VIEW best_records AS
    SELECT r.id, r.workload, r.target, r.tvm, r.latency, r.created, r.seconds, r.proof, r.provenance
    FROM (SELECT DISTINCT workload, target, tvm FROM records) AS k
    JOIN records AS r ON r.id = coalesce(
        (
            SELECT id FROM standings
            WHERE workload = k.workload AND target = k.target AND tvm = k.tvm AND NOT lost
            ORDER BY latency, id LIMIT 1
        ),
        (
            SELECT id FROM records
            WHERE workload = k.workload AND target = k.target AND tvm = k.tvm
            ORDER BY latency, id LIMIT 1
        )
    )
    """,
    """
    CREATE VIEW tasks AS
    SELECT key, op, name, shapes, dtypes, flops, bytes, family FROM workloads
    """,
    """
    CREATE VIEW trials AS
    SELECT m.id, w.op, w.name, t.name AS target, seconds, error, message,
        json_extract(provenance, '$.search') AS search,
        json_extract(provenance, '$.device') AS device,
        json_extract(provenance, '$.created') AS created,
        m.workload
    FROM measurements AS m
    JOIN workloads AS w ON w.key = m.workload
    JOIN targets AS t ON t.fingerprint = m.target
    """,
    "CREATE INDEX measurements_failed ON measurements (target, error) WHERE error <> ''",
)


@migrations(name="0003_dated_contests")
def dated_contests(db: Database) -> None:
    """Note when records were compared, so that registries agree on who has beaten whom."""
    for statement in _DATED_CONTESTS:
        db.execute(statement)
    db.execute("PRAGMA user_version = 3")


# Of each kind, in the order of the words: the model's name and what was shipped; what was asked, as
# in the manifest how it was verified, and SHA-256 of library, manifest and lock; how many tasks had
# a record, had neighbours, had neither, were not worth a trial, and trials spent; times of a run.
_BUILDS = {
    "TEXT NOT NULL DEFAULT ''": "name shipped tool tvm",
    "TEXT NOT NULL DEFAULT '{}'": "asked verification digests",
    "INTEGER NOT NULL DEFAULT 0": "hits near misses skipped trials",
    "REAL": "tuned_ms untuned_ms",
}


@migrations(name="0004_builds")
def builds(db: Database) -> None:
    """Note what each build asked for and got, and under which rules each search has ended."""
    db.execute("ALTER TABLE searches ADD COLUMN rules TEXT NOT NULL DEFAULT ''")  # '': unknown
    for kind, names in _BUILDS.items():
        for name in names.split():
            db.execute(f"ALTER TABLE builds ADD COLUMN {name} {kind}")
    db.execute("PRAGMA user_version = 4")
