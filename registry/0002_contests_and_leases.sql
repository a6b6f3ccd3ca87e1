-- Who has beaten whom, and who is tuning what.

CREATE TABLE beaten (           -- in a paired comparison, or tied with what was there before
    loser TEXT NOT NULL REFERENCES records (id),
    winner TEXT NOT NULL REFERENCES records (id) CHECK (winner <> loser),
    PRIMARY KEY (loser, winner)
) STRICT, WITHOUT ROWID;

CREATE INDEX beaten_by ON beaten (winner);

-- Which records another one of the same workload, target and TVM has beaten. CROSS JOIN keeps
-- SQLite from looking through all records of a task for each of them.
CREATE VIEW standings AS
SELECT *, EXISTS (
    SELECT 1 FROM beaten AS b CROSS JOIN records AS w
    WHERE b.loser = r.id AND w.id = b.winner
    AND w.workload = r.workload AND w.target = r.target AND w.tvm = r.tvm
) AS lost
FROM records AS r;

DROP VIEW best_records;

CREATE VIEW best_records AS
SELECT r.* FROM (SELECT DISTINCT workload, target, tvm FROM records) AS k
JOIN records AS r ON r.id = (
    SELECT id FROM standings
    WHERE workload = k.workload AND target = k.target AND tvm = k.tvm
    ORDER BY lost, latency, id LIMIT 1
);

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

CREATE INDEX leases_of ON leases (holder);

PRAGMA user_version = 2;
