"""The registry: every workload, measurement and record, in one SQLite file.

Records and measurements are only ever added. A reader asks SQL alone: no trace is parsed and
no compiler loaded to answer "is this tuned?".
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from ..system.digest import canonical_json
from . import queries
from .connect import BUSY_SECONDS, connect, transaction
from .faults import decoding, explained
from .inspection import complaints
from .keys import TaskKey
from .leases import Holder, Leases
from .record import Build, Contest, SearchEnd
from .rows import (
    build_of,
    build_row,
    measurement_of,
    measurement_row,
    record_of,
    record_row,
    search_row,
    workload_of,
    workload_row,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from ..target import Target
    from .record import Measurement, Record, Workload

_CHUNK = 1000  # rows read at a time, so that no lock is held while they are looked at

# Only an equal key is passed over; a row that breaks another rule is a bug and is refused.
# What others told of a workload has no name, until a model that has it says what it is.
_ADD_WORKLOAD = """
    INSERT INTO workloads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
    SET op = excluded.op, name = excluded.name, family = excluded.family,
        shapes = excluded.shapes, dtypes = excluded.dtypes,
        flops = excluded.flops, bytes = excluded.bytes
    WHERE workloads.name = '' AND excluded.name <> ''
"""
_ADD_RECORD = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_ADD_MEASUREMENT = "INSERT INTO measurements VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_MODEL = "INSERT INTO models VALUES (?, ?) ON CONFLICT DO NOTHING"
_ADD_CONTEST = """
    INSERT INTO beaten VALUES (:loser, :winner, :created) ON CONFLICT DO UPDATE
    SET created = excluded.created WHERE excluded.created > beaten.created
"""


class Registry:
    """An open registry file, to be used by one thread and closed (or used in `with`).

    Every method raises RegistryError if the file is damaged, locked, full or not writable.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._leases = Leases(connection)

    @classmethod
    def open(
        cls, path: Path, *, write: bool = True, busy_seconds: float = BUSY_SECONDS
    ) -> Registry:
        """Open a registry; made if it is not there, or, without `write`, as if it were empty.

        busy_seconds: how long to wait for another process's transaction.
        """
        return cls(connect(path, write=write, busy_seconds=busy_seconds), path)

    def copy(self) -> Registry:
        """The same in memory, to be changed without changing the file."""
        import sqlite3

        memory = sqlite3.connect(":memory:", isolation_level=None)
        with explained(self.path):
            self._connection.backup(memory)
        return Registry(memory, self.path)

    def close(self) -> None:
        """Close the file; what was added is already safe."""
        self._connection.close()

    def __enter__(self) -> Registry:  # noqa: PYI034 - typing.Self came with Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Registry({self.path})"

    # What is known

    def best(self, keys: Iterable[TaskKey], tvm: str) -> dict[TaskKey, Record]:
        """The best record of each key that has one: the fastest that no other has beaten.

        tvm: version that made the record; traces of other versions need not replay.
        """
        found = ((key, self.top(key, tvm, 1)) for key in dict.fromkeys(keys))
        return {key: records[0] for key, records in found if records}

    def top(self, key: TaskKey, tvm: str, count: int) -> list[Record]:
        """Up to `count` records of a key made with this version of TVM, the best first.

        Those that another one has beaten come behind all others; apart from that, the smallest
        median latency is first.
        """
        rows = self._rows(queries.TOP, (key.workload, key.target, tvm, count))
        return [self._record(row) for row in rows]

    def trials(self, keys: Iterable[TaskKey]) -> dict[TaskKey, int]:
        """How many measurements each key has, failures included; 0 where there are none."""
        sql = "SELECT count(*) AS n FROM measurements WHERE target = ? AND workload = ?"
        return {key: self._rows(sql, (key.target, key.workload))[0]["n"] for key in keys}

    def measurements(self, target: str, key: TaskKey | None = None) -> Iterator[Measurement]:
        """Every measurement of a target's fingerprint, or of one of its keys, oldest first."""
        # Without a key the table is walked in its own order: an index would need sorting.
        rows = (
            self._walk("measurements NOT INDEXED", "target = ?", (target,))
            if key is None
            else self._walk("measurements", "target = ? AND workload = ?", (target, key.workload))
        )
        return (self._measurement(row) for row in rows)

    def enough_for(self, keys: Iterable[TaskKey], tvm: str) -> dict[TaskKey, int]:
        """The largest budget of trials a task for which each key's search has ended.

        A key whose search never ended, or was interrupted, is not in the answer.
        """
        sql = (
            "SELECT max(enough_for) AS n FROM searches "
            "WHERE workload = ? AND target = ? AND tvm = ?"
        )
        found = ((key, self._rows(sql, (key.workload, key.target, tvm))[0]["n"]) for key in keys)
        return {key: most for key, most in found if most is not None}

    def ends(self, key: TaskKey) -> list[SearchEnd]:
        """The ends of a key's searches, under every version of TVM, the first first."""
        return [
            SearchEnd(key, **row) for row in self._rows(queries.ENDS, (key.workload, key.target))
        ]

    def ends_of(self, keys: Iterable[TaskKey], tvm: str) -> dict[TaskKey, list[SearchEnd]]:
        """The ends of each key's searches under a version of TVM, the first first.

        A key whose search never ended is not in the answer.
        """
        found = ((key, [end for end in self.ends(key) if end.tvm == tvm]) for key in keys)
        return {key: ends for key, ends in found if ends}

    def builds(self, limit: int = 100) -> list[Build]:
        """Finished builds, the newest first."""
        rows = self._rows("SELECT * FROM builds ORDER BY created DESC, id DESC LIMIT ?", (limit,))
        return [self._build(row) for row in rows]

    def ranking(self, key: TaskKey) -> list[tuple[str, str, bool]]:
        """Of each record of a key: TVM's version, id, and whether another one has beaten it.

        The records of a version stand together, the best first.
        """
        rows = self._rows(queries.RANKING, (key.workload, key.target))
        return [(row["tvm"], row["id"], bool(row["lost"])) for row in rows]

    def outdated(self, tvm: str) -> int:
        """How many keys have records, but none of this version of TVM."""
        count: int = self._rows(queries.OUTDATED, (tvm,))[0]["n"]
        return count

    def known(self, keys: Iterable[TaskKey]) -> set[TaskKey]:
        """Those of the keys whose workload is in the registry."""
        sql = "SELECT 1 FROM workloads WHERE key = ?"
        return {key for key in keys if self._rows(sql, (key.workload,))}

    def relatives(self, families: Sequence[str], target: str, tvm: str) -> list[Workload]:
        """Workloads of these families that were tuned for a target, by a search that has ended.

        Only such as a model of this machine has, so that their texts were made here.
        """
        values = {"families": canonical_json(list(families)), "target": target, "tvm": tvm}
        return [self._workload(row) for row in self._rows(queries.RELATIVES, values)]

    def alike(self, workload: Workload, target: str, count: int) -> list[Workload]:
        """Others of its operator that were measured: of its family first, then of like FLOPs."""
        values = {**vars(workload), "target": target, "count": count}
        return [self._workload(row) for row in self._rows(queries.ALIKE, values)]

    def seconds_per_trial(self, target: str) -> float | None:
        """Mean wall-clock seconds of one trial on a target's fingerprint; None if never tuned."""
        row = self._rows(queries.SECONDS_PER_TRIAL, (target,))[0]
        return row["seconds"] / row["trials"] if row["trials"] else None

    def query(
        self,
        op: str | None = None,
        target: str | None = None,
        model: str | None = None,
        since: str | None = None,
        shapes: Sequence[Sequence[int]] = (),
        limit: int = 100,
    ) -> list[dict[str, Any]]:
        """The best record of each task and TVM version, the newest first, as JSON objects.

        target, model: name, or beginning of the fingerprint or digest. since: ISO 8601, UTC.
        shapes: each of some tensor of the task.
        """
        sql, values = queries.best_records(op, target, model, since, shapes, limit)
        return [self._listed(row) for row in self._rows(sql, values)]

    def stats(self) -> dict[str, Any]:
        """What the registry holds, as one JSON object.

        trials_saved: those that models would have made had they not shared tasks and records.
        bytes: size of the file.
        """
        counts = {name: self._rows(sql)[0]["n"] for name, sql in queries.COUNTS.items()}
        size = self.path.stat().st_size if self.path.exists() else 0
        groups = {name: self._rows(sql) for name, sql in queries.GROUPS.items()}
        saved = sum(row["trials_saved"] for row in groups["per_target"])
        return {**counts, "trials_saved": saved, "bytes": size, **groups}

    def verify(self) -> list[str]:
        """What is wrong with the file, in words; reads every page and every row."""
        walk = partial(self._walk, where="TRUE", values=())
        return complaints(self._connection, self.path, walk)

    # What is added

    def add_target(self, target: Target) -> None:
        """Make a target known; its newest name is the one that is listed."""
        self._write(
            "INSERT INTO targets VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
            "SET name = excluded.name, json = excluded.json WHERE json <> excluded.json",
            [(target.fingerprint, target.name, canonical_json(target.to_json()))],
        )

    def add_workloads(self, workloads: Sequence[Workload]) -> None:
        """Make workloads known; those that a model of this machine named stay as they are."""
        rows = [workload_row(workload) for workload in workloads]
        self._write(_ADD_WORKLOAD, rows)

    def add_batch(self, measurements: Sequence[Measurement], records: Sequence[Record]) -> None:
        """Add what a batch of trials left behind, in one transaction: all of it or nothing."""
        measured = [measurement_row(measurement) for measurement in measurements]
        recorded = [record_row(record) for record in records]
        with explained(self.path), transaction(self._connection):
            self._connection.executemany(_ADD_MEASUREMENT, measured)
            self._connection.executemany(_ADD_RECORD, recorded)

    def add_contest(self, winner: Record, losers: Sequence[str], created: str) -> None:
        """Note that a record has beaten others in a comparison run by run, in one transaction.

        winner: added if it is new; also the one that was there first, where they tied.
        losers: ids of records. created: ISO 8601, UTC; of two comparisons of the same records the
        later counts.
        """
        contests = [Contest(loser, winner.id, created) for loser in losers]
        with explained(self.path), transaction(self._connection):
            self._connection.executemany(_ADD_RECORD, [record_row(winner)])
            self._connection.executemany(_ADD_CONTEST, map(vars, contests))

    def add_contests(self, contests: Iterable[Contest]) -> int:
        """Note comparisons of records that are there: how many of them say something new."""
        before = self._connection.total_changes
        with explained(self.path), transaction(self._connection):
            self._connection.executemany(_ADD_CONTEST, map(vars, contests))
        return self._connection.total_changes - before

    def add_searches(self, ends: Sequence[SearchEnd]) -> None:
        """Note searches that came to their end."""
        rows = [search_row(end) for end in ends]
        self._write("INSERT INTO searches VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def add_model(self, digest: str, name: str, tasks: Sequence[tuple[TaskKey, int]]) -> None:
        """Note a model's tasks with their weights, for the targets that the keys name.

        digest: SHA-256 of the model file. Tasks noted earlier for these targets are replaced.
        """
        rows = [(digest, key.workload, key.target, weight) for key, weight in tasks]
        with explained(self.path), transaction(self._connection):
            run = self._connection
            run.execute(
                "INSERT INTO models VALUES (?, ?) ON CONFLICT DO UPDATE SET name = excluded.name",
                (digest, name),
            )
            run.executemany(
                "DELETE FROM model_tasks WHERE model = ? AND target = ?",
                {(digest, key.target) for key, _ in tasks},
            )
            run.executemany("INSERT INTO model_tasks VALUES (?, ?, ?, ?)", rows)

    def add_build(self, build: Build) -> None:
        """Note a finished build, and its model if that is new; its target must be known."""
        row = build_row(build)
        names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        with explained(self.path), transaction(self._connection):
            self._connection.execute(_ADD_MODEL, (build.model, build.name))
            insert = f"INSERT INTO builds ({names}) VALUES ({values})"  # noqa: S608 - names of ours
            self._connection.execute(insert, row)

    def add_tuning(
        self, target: str, search: str, trials: int, seconds: float, created: str
    ) -> None:
        """Note what a tuning run took in wall-clock seconds, for `seconds_per_trial`."""
        row = (target, search, trials, float(seconds), created)
        self._write("INSERT INTO tunings VALUES (NULL, ?, ?, ?, ?, ?)", [row])

    # Upkeep

    def collect(self, *, dry_run: bool) -> dict[str, int]:
        """Drop what no build asks for, and say how many rows that were, or would be.

        records: those that another one has beaten, and those behind the best eight of their task.
        builds: all but the newest of each artifact. Measurements stay: searches learn from them.
        """
        with explained(self.path), transaction(self._connection):
            found = {
                name: [(row["id"],) for row in self._rows(sql)]
                for name, sql in queries.SURPLUS.items()
            }
            if not dry_run:
                for name, ids in found.items():
                    for sql in queries.DROP[name]:
                        self._connection.executemany(sql, ids)
        return {name: len(ids) for name, ids in found.items()}

    def vacuum(self) -> None:
        """Rewrite the file without the space of dropped rows."""
        with explained(self.path):
            self._connection.execute("VACUUM")

    # Who is tuning what

    def lease(self, keys: Sequence[TaskKey], holder: Holder) -> list[TaskKey]:
        """Those of the keys that nobody else is tuning; nobody else gets them until released.

        A lease also ends when its holder dies, so that asking again is all that waiting takes.
        """
        with explained(self.path):
            return self._leases.grant(keys, holder)

    def renew(self, holder: Holder) -> bool:
        """Say that the holder is there; False if it was taken for dead and has lost its leases.

        Only other machines and containers ask for it: after `leases.SILENCE` seconds without.
        """
        with explained(self.path):
            return self._leases.renew(holder)

    def release(self, holder: Holder, keys: Iterable[TaskKey] | None = None) -> None:
        """Give back the leases on these keys, or all of the holder's."""
        with explained(self.path):
            self._leases.release(holder, keys)

    def leaseholder(self, key: TaskKey) -> Holder | None:
        """Who was last granted the lease on a key and has not released it."""
        with explained(self.path):
            return self._leases.holder(key)

    # How rows and nouns become each other

    def _rows(
        self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()
    ) -> list[dict[str, Any]]:
        with explained(self.path):
            cursor = self._connection.execute(sql, values)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def _walk(self, table: str, where: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """Rows in the order they were added; between two chunks no lock is held."""
        sql = (
            f"SELECT rowid AS position, * FROM {table} WHERE {where} AND rowid > ? "  # noqa: S608
            f"ORDER BY rowid LIMIT {_CHUNK}"
        )
        last = 0
        while rows := self._rows(sql, (*values, last)):
            yield from rows
            last = rows[-1]["position"]

    def _write(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with explained(self.path), transaction(self._connection):
            self._connection.executemany(sql, rows)

    def _record(self, row: dict[str, Any]) -> Record:
        with decoding(self.path, row["id"]):
            return record_of(row)

    def _measurement(self, row: dict[str, Any]) -> Measurement:
        with decoding(self.path, row["id"]):
            return measurement_of(row)

    def _build(self, row: dict[str, Any]) -> Build:
        with decoding(self.path, row["id"]):
            return build_of(row)

    def _workload(self, row: dict[str, Any]) -> Workload:
        with decoding(self.path, row["key"]):
            return workload_of(row)

    def _listed(self, row: dict[str, Any]) -> dict[str, Any]:
        with decoding(self.path, row["id"]):
            parsed = {name: json.loads(row[name]) for name in ("shapes", "dtypes")}
        return {**row, **parsed}
