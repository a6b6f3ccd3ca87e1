"""What builds and tuning add to a registry. Records and measurements are only ever added."""

from collections.abc import Iterable, Sequence

from ..target import Target
from . import schema
from .database import Database
from .record import Build, Contest, Measurement, Record, SearchEnd, TaskKey, Workload

# Only an equal key is passed over; a row that breaks another rule is a bug and is refused.
UNLESS_KNOWN = " ON CONFLICT DO NOTHING"
# What others say of a workload has no name, until a model that has it says what it is.
UNLESS_NAMED = """
    ON CONFLICT DO UPDATE
    SET op = excluded.op, name = excluded.name, family = excluded.family,
        shapes = excluded.shapes, dtypes = excluded.dtypes,
        flops = excluded.flops, bytes = excluded.bytes
    WHERE workloads.name = '' AND excluded.name <> ''
"""
_RENAMED = " ON CONFLICT DO UPDATE SET name = excluded.name"
_CHANGED = f"{_RENAMED}, json = excluded.json WHERE json <> excluded.json"
# What was measured here was compared here: others may only say who has beaten a claim.
_OF_OTHERS = """
    INSERT INTO beaten (loser, winner, created) SELECT ?1, ?2, ?3
    WHERE EXISTS (SELECT 1 FROM records WHERE id IN (?1, ?2) AND claimed)
"""
_LATER = """
    ON CONFLICT DO UPDATE SET created = excluded.created WHERE excluded.created > beaten.created
"""


class Additions(Database):
    """What makes a registry grow; each method is one transaction, all of it or nothing."""

    def add_target(self, target: Target) -> None:
        """Make a target known; its newest name is the one that is listed."""
        self.write(schema.TARGETS.insert + _CHANGED, [schema.TARGETS.row(target)])

    def add_workloads(self, workloads: Iterable[Workload]) -> None:
        """Make workloads known; those that a model of this machine named stay as they are."""
        self.write(schema.WORKLOADS.insert + UNLESS_NAMED, map(schema.WORKLOADS.row, workloads))

    def add_batch(self, measurements: Sequence[Measurement], records: Iterable[Record]) -> None:
        """Add what a batch of trials left behind."""
        # Packed before the file is locked.
        measured = [schema.MEASUREMENTS.row(one) for one in measurements]
        recorded = [schema.RECORDS.row(one) for one in records]
        with self.writing() as run:
            run.executemany(schema.MEASUREMENTS.insert, measured)
            run.executemany(schema.RECORDS.insert + UNLESS_KNOWN, recorded)

    def add_contest(self, winner: Record, losers: Sequence[str], created: str) -> None:
        """Note that a record has beaten others in a comparison run by run.

        winner: added if it is new; also the one that was there first, where they tied.
        losers: ids of records. created: ISO 8601, UTC; of two comparisons of the same records the
        later counts.
        """
        contests = [Contest(loser, winner.id, created) for loser in losers]
        with self.writing() as run:
            run.execute(schema.RECORDS.insert + UNLESS_KNOWN, schema.RECORDS.row(winner))
            run.executemany(schema.BEATEN.insert + _LATER, map(schema.BEATEN.row, contests))

    def add_contests(self, contests: Iterable[Contest]) -> int:
        """Note comparisons that others made: how many of them say something new."""
        before = self._connection.total_changes
        self.write(_OF_OTHERS + _LATER, map(schema.BEATEN.row, contests))
        return self._connection.total_changes - before

    def add_searches(self, ends: Iterable[SearchEnd]) -> None:
        """Note searches that came to their end."""
        self.write(schema.SEARCHES.insert, map(schema.SEARCHES.row, ends))

    def add_model(self, digest: str, name: str, tasks: Sequence[tuple[TaskKey, int]]) -> None:
        """Note a model's tasks with their weights, for the targets that the keys name.

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
        """Note what a tuning run took in wall-clock seconds, for `seconds_per_trial`."""
        self.write(schema.TUNINGS.insert, [(target, search, trials, float(seconds), created)])
