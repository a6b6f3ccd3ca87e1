-- When records were compared, so that registries agree on who has beaten whom.

-- ISO 8601, UTC.
ALTER TABLE beaten ADD COLUMN created TEXT NOT NULL DEFAULT '';

-- Both records were there by then.
UPDATE beaten
SET created = coalesce(
    (SELECT max(r.created) FROM records AS r WHERE r.id IN (loser, winner)), created
);

DROP VIEW standings;

DROP VIEW best_records;

-- As before, but that of two comparisons with opposite ends the later counts, and neither if
-- they are of the same time: whichever is heard of first, here or from another registry.
-- No view has traces: people look at views.
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
FROM records AS r;

-- The first that was not beaten, mostly the first of all, ends the search for the best.
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
);

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

CREATE INDEX measurements_failed ON measurements (target, error) WHERE error <> '';

PRAGMA user_version = 3;
