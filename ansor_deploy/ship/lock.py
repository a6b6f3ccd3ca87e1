"""Locks of builds: a build writes the records that it used, and a frozen build uses no others.

Lists of tasks are here as well: they are enough to say what a model's lock must have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ..errors import MissingRecordError, RegistryError, UsageError
from ..registry.limits import BUNDLE_BYTES
from ..registry.lock_text import (
    Lock,
    LockedSplit,
    label,
    machine_of,
    read_lock,
    tasks_digest,
    write_lock,
)
from ..registry.record import Record, TaskKey
from ..system.atomic_file import held, write_whole
from ..system.digest import canonical_json, sha256
from ..system.environment import version
from ..system.host import lacks
from ..system.regular_file import read_regular
from ..target import HOST, differences
from ..tune.workspace import check_buildable
from .preset import Preset

if TYPE_CHECKING:
    from ..model.prepare import Prepared
    from ..model.tasks import Task
    from ..request import Request
    from ..target import Target
    from ..tune.ledger import Ledger
    from ..views import Report
    from .manifest import Manifest

_NAMED = 10  # the most missing tasks that an error lists


def write_used(manifest: Manifest, ledger: Ledger, report: Report) -> None:
    """Write what the build of a manifest used into the request's lock, if it has one."""
    if ledger.request.lock is None:
        return
    keys = manifest.keys(ledger.request.target)
    used = {task.record for task in manifest.tasks}
    best = ledger.best(keys) if manifest.shipped == "tuned" else {}
    records = {key: record for key, record in best.items() if record.id in used}
    write_entries(keys, records, ledger, report, _split_of(manifest, keys))


def _split_of(manifest: Manifest, keys: Iterable[TaskKey]) -> dict[LockedSplit, str]:
    """The split that a build has found, with the name of the model."""
    if (preset := manifest.preset) is None:
        return {}
    split = LockedSplit(tasks_digest(keys), preset.name, preset.threads, preset.streams)
    return {split: manifest.model.name}


def write_entries(
    keys: Iterable[TaskKey],
    records: Mapping[TaskKey, Record],
    ledger: Ledger,
    report: Report,
    splits: Mapping[LockedSplit, str] = MappingProxyType({}),
) -> None:
    """Write what these tasks get, and the model's splits, into the request's lock, if it has one.

    Tasks get their records, or the default schedule. Entries of other tasks stay, so that several
    models can share a lock. Entries also stay where the schedule is the same, even if its time
    here differs, and for tasks that were too small to be tried here.
    """
    request, target, tvm = ledger.request, ledger.request.target, _tvm()
    if (lock := request.lock) is None:
        return
    keys = list(keys)
    claimed = {key for key, known in ledger.standing(keys).items() if known.claim}
    untried = claimed - records.keys()
    lock.parent.mkdir(parents=True, exist_ok=True)
    with held(lock.parent):
        old = read_lock(lock, target, tvm, request.remake) if lock.exists() else Lock({})
        new = set(keys) - (untried & old.records.keys())
        kept = {key: record for key, record in old.records.items() if key not in new}
        defaults = old.defaults - {key.workload for key in new}
        defaults |= {key.workload for key in new if key not in records}
        merged = {**kept, **{key: _line_of(old, record) for key, record in records.items()}}
        machine = old.machine if target.name == HOST and old.machine else target
        labels = old.labels | _labels(new, ledger)
        labels |= {split.tasks: name for split, name in splits.items()}
        others = [one for one in old.splits if not _has_split(splits, one)]
        everything = (merged.values(), defaults, labels, (*others, *splits))
        if write_lock(lock, machine, tvm, *everything):
            report.wrote([lock])


def _has_split(splits: Iterable[LockedSplit], old: LockedSplit) -> bool:
    return any((one.tasks, one.preset) == (old.tasks, old.preset) for one in splits)


def _labels(keys: Iterable[TaskKey], ledger: Ledger) -> dict[str, str]:
    return {key: label(one) for key, one in ledger.registry.workloads(keys).items()}


def _line_of(lock: Lock, record: Record) -> Record:
    """The record that a lock has already, if it has the same schedule; else the new one."""
    said = lock.records.get(record.key, record)
    return said if said.trace == record.trace else record


def on_its_host(request: Request) -> Request:
    """A frozen request, for the host that its lock was made on if this host can run that code.

    So a lock gives the same bytes on all such hosts.
    """
    return replaced(request, target=_host_of(_path(request), request.target, request.remake))


def _host_of(lock: Path, target: Target, remake: str) -> Target:
    """The host that a lock was made on, if the target is a host that can run its code.

    Otherwise the target: also where it is not this host, or the lock is not for a host.
    """
    made_on = machine_of(lock, remake) if target.name == HOST and lock.exists() else None
    if made_on is None or made_on.name != HOST:
        return target
    if lacks(made_on.triple, made_on.cpu, made_on.features):
        return target
    return replaced(made_on, peak_gflops=target.peak_gflops, memory_gbs=target.memory_gbs)


def read_locked(
    model: Path, asked: Request, request: Request, report: Report
) -> tuple[Prepared, Lock]:
    """A model, and the lock from which a frozen build of it takes all records.

    asked: the user's request. request: the same for the lock's host. MissingRecordError or
    RegistryError where the lock does not have all that is needed.
    """
    from ..model.prepare import prepare
    from ..space.rule import rule_set

    if request.rules:  # a file that is no rule is refused before the work begins
        rule_set(request.rules, request.target.kind, request.precision, report.printed)
    if different := differences(request.target, asked.target):
        report.warn(f"{request.lock} was made on another host; {'; '.join(different)}")
    check_buildable(request.target)
    lock = lock_of(request)
    prepared = prepare(
        model, request.target, request.input_shapes, report.stage, report.step, request.context
    )
    check_complete(prepared, lock, request.lock, request.remake)
    check_possible(prepared.tasks, lock, request)
    return prepared, lock


def lock_of(request: Request, passed: Collection[str] = ()) -> Lock:
    """The request's lock. MissingRecordError where there is none, RegistryError for a bad one.

    passed: ids of records that have passed the firewall already.
    """
    lock = _path(request)
    if not lock.exists():
        raise MissingRecordError("there is no such lock", f"make it: {request.remake}", lock)
    return read_lock(lock, request.target, _tvm(), request.remake, passed)


def locked_preset(model: Prepared, lock: Lock, request: Request) -> Preset | None:
    """The preset that a frozen build asks for, with the split of its lock.

    MissingRecordError where the lock has none for the model.
    """
    if not request.preset:
        return None
    found = lock.split(tasks_digest(task.key for task in model.tasks), request.preset)
    if found is None:
        what = f"it has no split of the cores for {request.preset} of {model.path}"
        words = f"ansor-deploy build {model.path} --for {request.preset} --lock {request.lock}"
        hint = f"measure it on such a machine: {words} --no-frozen"
        raise MissingRecordError(what, hint, request.lock)
    return Preset(request.preset, found.threads, found.streams, ())


def lock_digest(lock: Lock, keys: Sequence[TaskKey], preset: str) -> str:
    """SHA-256 over a lock's entries for these tasks, and for their split for a preset, if any."""
    said = {key: lock.records[key].id if key in lock.records else "" for key in keys}
    said |= {key: "default" for key in keys if key.workload in lock.defaults}
    lines: list[Any] = sorted((key.workload, what) for key, what in said.items())
    if preset and (split := lock.split(tasks_digest(keys), preset)):
        lines.append(split.to_json())
    return sha256(canonical_json(lines))


def is_same(manifest: Manifest, request: Request) -> bool:
    """Whether the lock has the same entries for a manifest's tasks; others may have changed.

    The records that the library was built with passed the firewall then.
    """
    keys = manifest.keys(request.target)
    lock = lock_of(request, {task.record for task in manifest.tasks})
    return manifest.lock == lock_digest(lock, keys, request.preset)


def select(model: TaskList, lock: Path, target: Target, output: Path, remake: str) -> None:
    """Write a lock with another lock's entries for a model's tasks, unchanged.

    MissingRecordError where that lacks a task, RegistryError for a bad lock. remake: the command
    that writes the other lock.
    """
    host = _host_of(lock, target, remake)
    said, model = read_lock(lock, host, _tvm(), remake), model.moved(target, host)
    check_complete(model, said, lock, remake)
    keys = {task.key for task in model.tasks}
    records = [record for key, record in said.records.items() if key in keys]
    defaults = said.defaults & {key.workload for key in keys}
    splits = [one for one in said.splits if one.tasks == tasks_digest(keys)]
    machine = said.machine or host
    write_lock(output, machine, _tvm(), records, defaults, said.labels, splits)


def check_complete(
    model: Prepared | TaskList, locked: Lock, lock: Path | None, remake: str
) -> None:
    """MissingRecordError where a lock lacks a task of the model.

    remake: the command that writes the lock.
    """
    missing = [task for task in model.tasks if not locked.names(task.key)]
    if not missing:
        return
    names = [f"{task.name} {task.key.workload[:12]}" for task in missing[:_NAMED]]
    more = [f"and {len(missing) - _NAMED} more"] if len(missing) > _NAMED else []
    raise MissingRecordError(
        f"it lacks {len(missing)} of the {len(model.tasks)} tasks of {model.path}: "
        + ", ".join([*names, *more]),
        f"make them: {remake}",
        lock,
    )


def check_possible(tasks: Iterable[Task], locked: Lock, request: Request) -> None:
    """RegistryError where a record's time is impossible for its task on any machine."""
    for task in tasks:
        if (record := locked.records.get(task.key)) is None:
            continue
        if wrong := task.workload.impossible(record.seconds, request.target):
            hint = f"remove the lock and make it again: {request.remake}"
            raise RegistryError(f"the record of {task.name}: {wrong}", hint, request.lock)


def _path(request: Request) -> Path:
    assert request.lock is not None  # noqa: S101 - the command line asks for it
    return request.lock


def _tvm() -> str:
    return version("apache-tvm")


class NamedTask(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A task: its name in the model, for people, and the two parts of its key."""

    name: str
    workload: str
    target: str

    @property
    def key(self) -> TaskKey:
        """The key by which a lock has the task."""
        return TaskKey(self.workload, self.target)


class TaskList(msgspec.Struct, frozen=True, rename={"path": "model"}):
    """The tasks of a model for one target. path: where the model was."""

    path: str
    tasks: tuple[NamedTask, ...]

    @classmethod
    def of(cls, model: Prepared) -> TaskList:
        """The tasks of a model that was read."""
        tasks = (NamedTask(task.name, task.key.workload, task.key.target) for task in model.tasks)
        return cls(str(model.path), tuple(tasks))

    def moved(self, target: Target, host: Target) -> TaskList:
        """The same tasks for another host. Its locks lack those whose programs differ there."""
        moved = {target.fingerprint: host.fingerprint}
        tasks = (replace(one, target=moved.get(one.target, one.target)) for one in self.tasks)
        return replace(self, tasks=tuple(tasks))

    @classmethod
    def read(cls, file: Path) -> TaskList:
        """Read a file that `write` has written; UsageError for anything else."""
        try:
            return msgspec.json.decode(read_regular(file, BUNDLE_BYTES), type=cls)
        except (OSError, msgspec.MsgspecError) as error:
            hint = "Make it: ansor-deploy lock tasks MODEL -o FILE."
            raise UsageError(f"{file}: not a list of tasks: {error}", hint) from error

    def write(self, file: Path) -> None:
        """Write the list, whole or not at all; equal lists give equal files."""
        write_whole(file, f"{canonical_json(msgspec.to_builtins(self))}\n".encode())
