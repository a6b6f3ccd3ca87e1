-- The tables, indexes, views and trigger of a registry.

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
) STRICT;

CREATE TABLE targets (
    fingerprint TEXT PRIMARY KEY,
    name TEXT NOT NULL,         -- as last declared: names are not identity
    json TEXT NOT NULL
) STRICT;

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
) STRICT;

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
    trace BLOB NOT NULL,        -- zlib
    claimed INTEGER NOT NULL    -- 1: others say so, and it was not measured here
) STRICT;

CREATE TABLE models (
    digest TEXT PRIMARY KEY,    -- SHA-256 of the model file
    name TEXT NOT NULL
) STRICT;

CREATE TABLE model_tasks (
    model TEXT NOT NULL REFERENCES models (digest),
    workload TEXT NOT NULL REFERENCES workloads (key),
    target TEXT NOT NULL REFERENCES targets (fingerprint),
    weight INTEGER NOT NULL CHECK (weight > 0),
    PRIMARY KEY (model, workload, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE builds (           -- what each asked for and got
    id INTEGER PRIMARY KEY,
    artifact TEXT NOT NULL,     -- path
    model TEXT NOT NULL REFERENCES models (digest),
    target TEXT NOT NULL REFERENCES targets (fingerprint),
    created TEXT NOT NULL,      -- ISO 8601, UTC
    manifest TEXT NOT NULL,     -- JSON
    name TEXT NOT NULL,         -- the model's
    shipped TEXT NOT NULL,
    tool TEXT NOT NULL,
    tvm TEXT NOT NULL,
    asked TEXT NOT NULL,        -- JSON
    verification TEXT NOT NULL, -- JSON, as in the manifest
    digests TEXT NOT NULL,      -- JSON: SHA-256 of library, manifest and lock
    hits INTEGER NOT NULL,      -- tasks with a record
    near INTEGER NOT NULL,      -- with neighbours
    misses INTEGER NOT NULL,    -- with neither
    skipped INTEGER NOT NULL,   -- not worth a trial
    trials INTEGER NOT NULL,    -- spent
    tuned_ms REAL,              -- of a run; NULL where nothing was timed
    untuned_ms REAL
) STRICT;

CREATE TABLE tunings (
    id INTEGER PRIMARY KEY,
    target TEXT NOT NULL REFERENCES targets (fingerprint),
    search TEXT NOT NULL,
    trials INTEGER NOT NULL CHECK (trials >= 0),
    seconds REAL NOT NULL CHECK (seconds >= 0),  -- wall clock
    created TEXT NOT NULL       -- ISO 8601, UTC
) STRICT;

CREATE TABLE searches (         -- how each has ended
    id INTEGER PRIMARY KEY,
    workload TEXT NOT NULL REFERENCES workloads (key),
    target TEXT NOT NULL REFERENCES targets (fingerprint),
    tvm TEXT NOT NULL,
    search TEXT NOT NULL,
    trials INTEGER NOT NULL CHECK (trials >= 0),
    reason TEXT NOT NULL,       -- why it ended
    enough_for INTEGER NOT NULL, -- trials a task below which nothing is left to do
    created TEXT NOT NULL,      -- ISO 8601, UTC
    rules TEXT NOT NULL,        -- digest of those that were asked; '' if unknown
    claimed INTEGER NOT NULL    -- 1: others say so, and it was not made here
) STRICT;

CREATE TABLE beaten (           -- in a paired comparison, or tied with what was there before
    loser TEXT NOT NULL REFERENCES records (id),
    winner TEXT NOT NULL REFERENCES records (id) CHECK (winner <> loser),
    created TEXT NOT NULL,      -- ISO 8601, UTC
    PRIMARY KEY (loser, winner)
) STRICT, WITHOUT ROWID;

CREATE TABLE holders (          -- processes that are tuning
    token TEXT PRIMARY KEY,     -- random
    host TEXT NOT NULL,         -- for messages only
    boot TEXT NOT NULL,         -- the kernel's boot id, '' if unknown
    space TEXT NOT NULL,        -- the PID namespace, '' if unknown
    pid INTEGER NOT NULL,
    started INTEGER NOT NULL,   -- clock ticks from boot to the process's start
    beat INTEGER NOT NULL       -- how often it has said that it is there
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (           -- what each of them is tuning
    workload TEXT NOT NULL,
    target TEXT NOT NULL,
    holder TEXT NOT NULL REFERENCES holders (token) ON DELETE CASCADE,
    PRIMARY KEY (workload, target)
) STRICT, WITHOUT ROWID;

-- "Is this task tuned, and how well?": one probe, what was measured here and the smallest latency
-- first.
CREATE INDEX records_best ON records (workload, target, tvm, claimed, latency, id);

CREATE INDEX measurements_of ON measurements (target, workload);

CREATE INDEX measurements_failed ON measurements (target, error) WHERE error <> '';

CREATE INDEX searches_of ON searches (workload, target, tvm, enough_for);

CREATE INDEX workloads_op ON workloads (op);

CREATE INDEX model_tasks_of ON model_tasks (workload, target);

CREATE INDEX beaten_by ON beaten (winner);

CREATE INDEX leases_of ON leases (holder);

-- Which records another one of the same workload, target and TVM has beaten. CROSS JOIN keeps
-- SQLite from looking through all records of a task for each of them. Of two comparisons with
-- opposite ends the later counts, and neither if they are of the same time: whichever is heard of
-- first, here or from another registry. Nothing that was measured here is beaten by what others
-- claim, and a claim which was beaten here stays so. No view has traces: people look at views.
CREATE VIEW standings AS
SELECT id, workload, target, tvm, latency, created, seconds, proof, provenance, claimed, EXISTS (
    SELECT 1 FROM beaten AS b CROSS JOIN records AS w
    WHERE b.loser = r.id AND w.id = b.winner
    AND w.workload = r.workload AND w.target = r.target AND w.tvm = r.tvm
    AND w.claimed <= r.claimed
    AND (w.claimed < r.claimed OR NOT EXISTS (
        SELECT 1 FROM beaten AS o
        WHERE o.loser = b.winner AND o.winner = b.loser AND o.created >= b.created
    ))
) AS lost
FROM records AS r;

-- What was measured here comes first. The first that was not beaten, mostly the first of all, ends
-- the search for the best.
CREATE VIEW best_records AS
SELECT r.id, r.workload, r.target, r.tvm, r.latency, r.created, r.seconds, r.proof, r.provenance,
    r.claimed
FROM (SELECT DISTINCT workload, target, tvm FROM records) AS k
JOIN records AS r ON r.id = coalesce(
    (
        SELECT id FROM standings
        WHERE workload = k.workload AND target = k.target AND tvm = k.tvm AND NOT lost
        ORDER BY claimed, latency, id LIMIT 1
    ),
    (
        SELECT id FROM records
        WHERE workload = k.workload AND target = k.target AND tvm = k.tvm
        ORDER BY claimed, latency, id LIMIT 1
    )
);

CREATE VIEW model_coverage AS
SELECT model, target, count(*) AS tasks, sum(EXISTS (
    SELECT 1 FROM records AS r WHERE r.workload = t.workload AND r.target = t.target
)) AS covered
FROM model_tasks AS t GROUP BY model, target;

CREATE VIEW tasks AS
SELECT key, op, name, shapes, dtypes, flops, bytes, family FROM workloads;

CREATE VIEW trials AS
SELECT m.id, w.op, w.name, t.name AS target, seconds, error, message,
    json_extract(provenance, '$.search') AS search,
    json_extract(provenance, '$.device') AS device,
    json_extract(provenance, '$.created') AS created,
    m.workload
FROM measurements AS m
JOIN workloads AS w ON w.key = m.workload
JOIN targets AS t ON t.fingerprint = m.target;

CREATE TRIGGER records_are_immutable BEFORE UPDATE ON records
BEGIN SELECT raise(ABORT, 'records are immutable'); END;
