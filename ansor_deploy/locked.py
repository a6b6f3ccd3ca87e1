"""Builds and their lock: a build writes the records that it used, a frozen one uses no others."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import MissingRecordError
from .plan import SERVED
from .registry.keys import TaskKey
from .registry.lock import Lock, read_lock, write_lock
from .registry.record import SearchEnd
from .registry.store import Registry

if TYPE_CHECKING:
    from .model.prepare import Prepared
    from .pipeline import Session
    from .plan import Budget
    from .registry.record import Record
    from .report import Report

_NAMED = 10  # missing tasks that an error lists


def adopt(lock: Path, session: Session, registry: Registry) -> None:
    """Take the records of a lock into the registry, for the workloads that it knows.

    Whoever wrote the lock has tuned them as far as a normal effort goes: they are not tuned again.
    """
    if not lock.exists():
        return
    locked, tvm = read_lock(lock, session.target, _tvm()), _tvm()
    known = registry.known(locked.records)
    records = [record for key, record in locked.records.items() if key in known]
    registry.add_batch([], records)
    enough = registry.enough_for(known, tvm)
    ends = [
        _end(record, session.budget)
        for record in records
        if enough.get(record.key, SERVED) == SERVED
    ]
    registry.add_searches(ends)


def write(lock: Path, manifest: dict[str, Any], session: Session, report: Report) -> None:
    """Write the lock of the build that a manifest tells of."""
    keys = [TaskKey(task["key"], session.target.fingerprint) for task in manifest["tasks"]]
    used = {task["record"] for task in manifest["tasks"]}
    with Registry.open(session.registry, write=False) as registry:
        best = registry.best(keys, manifest["tvm"])
    tuned = manifest["shipped"] == "tuned"
    records = {key: one for key, one in best.items() if tuned and one.id in used}
    defaults = [key.workload for key in keys if key not in records]
    if write_lock(lock, session.target, manifest["tvm"], records.values(), defaults):
        report.wrote([lock])


def locked_records(model: Prepared, output: Path, session: Session) -> dict[TaskKey, Record]:
    """The records of a model's tasks in the session's lock.

    MissingRecordError where the lock does not name a task of the model.
    """
    assert session.lock is not None  # noqa: S101 - the command line asks for it
    locked = read_lock(session.lock, session.target, _tvm())
    _check_complete(model, locked, session.lock, output)
    return {t.key: locked.records[t.key] for t in model.tasks if t.key in locked.records}


def _check_complete(model: Prepared, locked: Lock, lock: Path, output: Path) -> None:
    missing = [task for task in model.tasks if not locked.names(task.key)]
    if not missing:
        return
    names = [f"{task.name} {task.key.workload[:12]}" for task in missing[:_NAMED]]
    more = [f"and {len(missing) - _NAMED} more"] if len(missing) > _NAMED else []
    raise MissingRecordError(
        f"{lock} lacks {len(missing)} of the {len(model.tasks)} tasks of {model.path}: "
        + ", ".join([*names, *more]),
        f"make it anew: ansor-deploy build {model.path} -o {output} --lock {lock}",
    )


def _end(record: Record, budget: Budget) -> SearchEnd:
    return SearchEnd(
        key=record.key,
        tvm=record.provenance.tvm,
        search=record.provenance.search,
        trials=0,
        reason="locked",
        enough_for=budget.per_task,
        created=record.provenance.created,
    )


def _tvm() -> str:
    return metadata.version("apache-tvm")
