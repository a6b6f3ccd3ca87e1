-- The tables, indexes and views of version 1.

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
    trace BLOB NOT NULL         -- zlib
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

CREATE TABLE builds (
    id INTEGER PRIMARY KEY,
    artifact TEXT NOT NULL,     -- path
    model TEXT NOT NULL REFERENCES models (digest),
    target TEXT NOT NULL REFERENCES targets (fingerprint),
    created TEXT NOT NULL,      -- ISO 8601, UTC
    manifest TEXT NOT NULL      -- JSON
) STRICT;

CREATE TABLE tunings (
    id INTEGER PRIMARY KEY,
    target TEXT NOT NULL REFERENCES targets (fingerprint),
    search TEXT NOT NULL,
    trials INTEGER NOT NULL CHECK (trials >= 0),
    seconds REAL NOT NULL CHECK (seconds >= 0),  -- wall clock
    created TEXT NOT NULL       -- ISO 8601, UTC
) STRICT;

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
) STRICT;

-- "Is this task tuned, and how well?": one probe, the smallest latency first.
CREATE INDEX records_best ON records (workload, target, tvm, latency, id);

CREATE INDEX measurements_of ON measurements (target, workload);

CREATE INDEX searches_of ON searches (workload, target, tvm, enough_for);

CREATE INDEX workloads_op ON workloads (op);

CREATE INDEX model_tasks_of ON model_tasks (workload, target);

CREATE VIEW best_records AS
SELECT * FROM records AS r
WHERE id = (
    SELECT id FROM records
    WHERE workload = r.workload AND target = r.target AND tvm = r.tvm
    ORDER BY latency, id LIMIT 1
);

CREATE VIEW model_coverage AS
SELECT model, target, count(*) AS tasks, sum(EXISTS (
    SELECT 1 FROM records AS r WHERE r.workload = t.workload AND r.target = t.target
)) AS covered
FROM model_tasks AS t GROUP BY model, target;

CREATE TRIGGER records_are_immutable BEFORE UPDATE ON records
BEGIN SELECT raise(ABORT, 'records are immutable'); END;

PRAGMA user_version = 1;
