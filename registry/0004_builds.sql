-- What each build asked for and got, and under which rules each search has ended.

-- '': unknown.
ALTER TABLE searches ADD COLUMN rules TEXT NOT NULL DEFAULT '';

-- The model's name, what was shipped, and the versions.
ALTER TABLE builds ADD COLUMN name TEXT NOT NULL DEFAULT '';

ALTER TABLE builds ADD COLUMN shipped TEXT NOT NULL DEFAULT '';

ALTER TABLE builds ADD COLUMN tool TEXT NOT NULL DEFAULT '';

ALTER TABLE builds ADD COLUMN tvm TEXT NOT NULL DEFAULT '';

-- JSON: what was asked; as in the manifest how it was verified; SHA-256 of library, manifest and lock.
ALTER TABLE builds ADD COLUMN asked TEXT NOT NULL DEFAULT '{}';

ALTER TABLE builds ADD COLUMN verification TEXT NOT NULL DEFAULT '{}';

ALTER TABLE builds ADD COLUMN digests TEXT NOT NULL DEFAULT '{}';

-- How many tasks had a record, had neighbours, had neither, were not worth a trial; trials spent.
ALTER TABLE builds ADD COLUMN hits INTEGER NOT NULL DEFAULT 0;

ALTER TABLE builds ADD COLUMN near INTEGER NOT NULL DEFAULT 0;

ALTER TABLE builds ADD COLUMN misses INTEGER NOT NULL DEFAULT 0;

ALTER TABLE builds ADD COLUMN skipped INTEGER NOT NULL DEFAULT 0;

ALTER TABLE builds ADD COLUMN trials INTEGER NOT NULL DEFAULT 0;

-- Times of a run; NULL where nothing was timed.
ALTER TABLE builds ADD COLUMN tuned_ms REAL;

ALTER TABLE builds ADD COLUMN untuned_ms REAL;

PRAGMA user_version = 4;
