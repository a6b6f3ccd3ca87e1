-- Which records and ends of searches are what others say, and were not measured here.

ALTER TABLE records ADD COLUMN claimed INTEGER NOT NULL DEFAULT 0;

ALTER TABLE searches ADD COLUMN claimed INTEGER NOT NULL DEFAULT 0;

-- Measurements never travel: what has none came from elsewhere.
DROP TRIGGER records_are_immutable;

UPDATE records SET claimed = 1 WHERE (workload, target, trace) NOT IN (
    SELECT workload, target, trace FROM measurements WHERE error = ''
);

CREATE TRIGGER records_are_immutable BEFORE UPDATE ON records
BEGIN SELECT raise(ABORT, 'records are immutable'); END;

DROP INDEX records_best;

CREATE INDEX records_best ON records (workload, target, tvm, claimed, latency, id);

DROP VIEW standings;

DROP VIEW best_records;

-- As before, but that nothing which was measured here is beaten by what others claim, and that a
-- claim which was beaten here stays so.
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

PRAGMA user_version = 5;
