"""Builds and their lock: a build writes the records that it used, a frozen one uses no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MissingRecordError
from ..tune.plan import SERVED
from ..registry.keys import TaskKey
from ..system.digest import canonical_json, sha256
from ..registry.lock import Lock, read_lock, write_lock
from ..registry.record import SearchEnd
from ..registry.store import Registry
from ..system.atomic_file import held

if TYPE_CHECKING:
    from ..model.prepare import Prepared
    from ..request import Budget
    from ..registry.record import Record
    from ..report import Report
    from ..request import Request
    from ..target import Target
    from .task_list import TaskList

_NAMED = 10  # missing tasks that an error lists


def write_used(lock: Path, manifest: dict[str, Any], request: Request, report: Report) -> None:
    """Write into a lock what the build used that a manifest tells of."""
    keys = [TaskKey(task["key"], request.target.fingerprint) for task in manifest["tasks"]]
    used = {task["record"] for task in manifest["tasks"]}
    with Registry.open(request.registry, write=False) as registry:
        best = registry.best(keys, manifest["tvm"])
    tuned = manifest["shipped"] == "tuned"
    records = {key: one for key, one in best.items() if tuned and one.id in used}
    write(lock, keys, records, request, report)


def write(
    lock: Path,
    keys: Iterable[TaskKey],
    records: Mapping[TaskKey, Record],
    request: Request,
    report: Report,
) -> None:
    """Write into a lock what these tasks get: their records, or the default schedule.

    What it says of other tasks stays, so that several models may share it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with held(lock.parent):
        old = read_lock(lock, request.target, _tvm()) if lock.exists() else Lock({})
        told = set(keys)
        kept = {key: record for key, record in old.records.items() if key not in told}
        defaults = old.defaults - {key.workload for key in told}
        defaults |= {key.workload for key in told if key not in records}
        merged = {**kept, **records}
        if write_lock(lock, request.target, _tvm(), merged.values(), defaults):
            report.wrote([lock])


def read(request: Request) -> Lock:
    """The request's lock. MissingRecordError where there is none, RegistryError for a bad one."""
    assert request.lock is not None  # noqa: S101 - the command line asks for it
    if not request.lock.exists():
        raise MissingRecordError(
            "there is no such lock",
            f"make it: ansor-deploy tune MODEL --lock {request.lock}",
            request.lock,
        )
    return read_lock(request.lock, request.target, _tvm())


def lock_digest(lock: Lock, keys: Iterable[TaskKey]) -> str:
    """SHA-256 over what a lock says of some tasks."""
    said = {key: lock.records[key].id if key in lock.records else "" for key in keys}
    said |= {key: "default" for key in keys if key.workload in lock.defaults}
    return sha256(canonical_json(sorted((key.workload, what) for key, what in said.items())))


def select(model: TaskList, lock: Path, target: Target, output: Path) -> None:
    """Write a lock with what another says of a model's tasks, in the same words.

    MissingRecordError where it does not name one of them, RegistryError for a bad lock.
    """
    said = read_lock(lock, target, _tvm())
    check_complete(model, said, lock)
    keys = {task.key for task in model.tasks}
    records = [record for key, record in said.records.items() if key in keys]
    write_lock(output, target, _tvm(), records, said.defaults & {key.workload for key in keys})


def check_complete(model: Prepared | TaskList, locked: Lock, lock: Path | None) -> None:
    """MissingRecordError where a lock does not name a task of the model."""
    missing = [task for task in model.tasks if not locked.names(task.key)]
    if not missing:
        return
    names = [f"{task.name} {task.key.workload[:12]}" for task in missing[:_NAMED]]
    more = [f"and {len(missing) - _NAMED} more"] if len(missing) > _NAMED else []
    raise MissingRecordError(
        f"it lacks {len(missing)} of the {len(model.tasks)} tasks of {model.path}: "
        + ", ".join([*names, *more]),
        f"make them: ansor-deploy tune {model.path} --lock {lock}",
        lock,
    )


def _tvm() -> str:
    return metadata.version("apache-tvm")
