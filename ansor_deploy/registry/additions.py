"""The methods by which builds and tuning add to a registry. They never change what is known."""

from collections.abc import Iterable, Sequence

from ..target import Target
from . import schema
from .database import Database
from .record import Build, Contest, Measurement, Record, SearchEnd, TaskKey, Workload

# A row with a known key is skipped; a row that breaks another constraint is a bug and is refused.
UNLESS_KNOWN = " ON CONFLICT DO NOTHING"
# A workload of others has no name until a model of this machine that has it gives it one.
UNLESS_NAMED = """
    ON CONFLICT DO UPDATE
    SET op = excluded.op, name = excluded.name, family = excluded.family,
        shapes = excluded.shapes, dtypes = excluded.dtypes,
        flops = excluded.flops, bytes = excluded.bytes
    WHERE workloads.name = '' AND excluded.name <> ''
"""
_RENAMED = " ON CONFLICT DO UPDATE SET name = excluded.name"
_CHANGED = f"{_RENAMED}, json = excluded.json WHERE json <> excluded.json"
# Records measured here are also compared here: others' contests count only if a claim takes part.
_OF_OTHERS = """
    INSERT INTO beaten (loser, winner, created) SELECT ?1, ?2, ?3
    WHERE EXISTS (SELECT 1 FROM records WHERE id IN (?1, ?2) AND claimed)
"""
_LATER = """
    ON CONFLICT DO UPDATE SET created = excluded.created WHERE excluded.created > beaten.created
"""
# Contests with the opposite end that are still to come, since the clock was set back: none made
# here would count before that time.
_TO_COME = "DELETE FROM beaten WHERE loser = ? AND winner = ? AND created > ?"


class Additions(Database):
    """Adds rows to a registry; each method is one transaction, all of it or nothing."""

    def add_target(self, target: Target) -> None:
        """Add a target; of several names, the newest is kept."""
        self.write(schema.TARGETS.insert + _CHANGED, [schema.TARGETS.row(target)])

    def add_workloads(self, workloads: Iterable[Workload]) -> None:
        """Add workloads; those that a model of this machine has named stay as they are."""
        self.write(schema.WORKLOADS.insert + UNLESS_NAMED, map(schema.WORKLOADS.row, workloads))

    def add_batch(self, measurements: Sequence[Measurement], records: Iterable[Record]) -> None:
        """Add the measurements and records of a batch of trials."""
        # Rows are packed before the file is locked.
        measured = [schema.MEASUREMENTS.row(one) for one in measurements]
        recorded = [schema.RECORDS.row(one) for one in records]
        with self.writing() as run:
            run.executemany(schema.MEASUREMENTS.insert, measured)
            run.executemany(schema.RECORDS.insert + UNLESS_KNOWN, recorded)

    def add_contest(self, winner: Record, losers: Sequence[str], created: str) -> None:
        """Note that a record has beaten others in a comparison run by run.

        winner: added if it is new; where they tied, the one that was there first. losers: ids of
        records. created: ISO 8601, UTC; of two comparisons of the same records the later counts.
        """
        contests = [Contest(loser, winner.id, created) for loser in losers]
        with self.writing() as run:
            run.execute(schema.RECORDS.insert + UNLESS_KNOWN, schema.RECORDS.row(winner))
            run.executemany(_TO_COME, [(one.winner, one.loser, one.created) for one in contests])
            run.executemany(schema.BEATEN.insert + _LATER, map(schema.BEATEN.row, contests))

    def add_contests(self, contests: Iterable[Contest]) -> int:
        """Note comparisons that others made; return how many of them are new or later."""
        before = self._connection.total_changes
        self.write(_OF_OTHERS + _LATER, map(schema.BEATEN.row, contests))
        return self._connection.total_changes - before

    def add_searches(self, ends: Iterable[SearchEnd]) -> None:
        """Note searches that have ended."""
        self.write(schema.SEARCHES.insert, map(schema.SEARCHES.row, ends))

    def add_model(self, digest: str, name: str, tasks: Sequence[tuple[TaskKey, int]]) -> None:
        """Note a model's tasks with their weights, for the targets in their keys.

        digest: SHA-256 of the model file. Tasks noted earlier for these targets are replaced.
        """
        rows = [(digest, key.workload, key.target, weight) for key, weight in tasks]
        with self.writing() as run:
            run.execute(schema.MODELS.insert + _RENAMED, (digest, name))
            run.executemany(
                "DELETE FROM model_tasks WHERE model = ? AND target = ?",
                {(digest, key.target) for key, _ in tasks},
            )
            run.executemany(schema.MODEL_TASKS.insert, rows)

    def add_build(self, build: Build) -> None:
        """Note a finished build, and its model if that is new; its target must be known."""
        with self.writing() as run:
            run.execute(schema.MODELS.insert + UNLESS_KNOWN, (build.model, build.name))
            run.execute(schema.BUILDS.insert, schema.BUILDS.row(build))

    def add_tuning(
        self, target: str, search: str, trials: int, seconds: float, created: str
    ) -> None:
        """Note how many wall-clock seconds a tuning run took, for `seconds_per_trial`."""
        self.write(schema.TUNINGS.insert, [(target, search, trials, float(seconds), created)])
