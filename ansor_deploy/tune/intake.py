"""Adds models to the registry, with the records of their tasks that a lock and layers have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..registry.layers import bring_in, like
from ..registry.lock_text import read_lock
from ..registry.record import TaskKey
from .workspace import Workspace, open_registry

if TYPE_CHECKING:
    from ..model.prepare import Prepared
    from ..model.tasks import Task
    from ..request import Request, Shapes
    from ..views import Report
    from .ledger import Ledger


def read(models: Iterable[Path], work: Workspace) -> tuple[list[Prepared], list[Task]]:
    """Read models into the registry, with records of others. Returns models and unique tasks.

    The user's rules are loaded first: a file that is no rule is refused before the work begins.
    """
    if work.request.rules:
        _ = work.rules
    prepared, tasks = _prepared(models, work.request, work.report)
    note(prepared, work)
    return prepared, tasks


def _prepared(
    models: Iterable[Path], request: Request, report: Report
) -> tuple[list[Prepared], list[Task]]:
    from ..model.prepare import merge, prepare

    words = (request.target, request.input_shapes, report.stage, report.step, request.context)
    prepared = [prepare(model, *words) for model in models]
    return prepared, merge(prepared)


@contextmanager
def looked_up(
    models: Iterable[Path], request: Request, indexes: tuple[Path, ...], report: Report
) -> Iterator[tuple[list[Prepared], list[Task], Workspace]]:
    """As `read`, with a workspace that changes no registry: records of layers go to a copy.

    indexes: registries of the layers' present contents.
    """
    prepared, tasks = _prepared(models, request, report)
    asked = replace(request, read_only=True)
    with open_registry(asked, write=bool(request.layers)) as registry:
        work = Workspace(request, report, registry, indexes)
        if request.layers:
            note(prepared, work)
        yield prepared, tasks, work


def others(model: Prepared, work: Workspace) -> list[tuple[Prepared, Workspace]]:
    """The model for each further target of the library, with a workspace in which nothing runs.

    For a range of batches, all targets get the same sizes, whatever each would choose.
    """
    found = []
    sizes: tuple[Shapes, ...] = tuple({**one.input_shapes} for one in model.imported.interfaces)
    for request in work.request.others:
        shapes = sizes if model.batch else request.input_shapes
        place = replace(work, request=replace(request, input_shapes=shapes), machine=None)
        (prepared,), _ = read([model.path], place)
        found.append((prepared, place))
    return found


def note(prepared: Iterable[Prepared], work: Workspace) -> None:
    """Add models to the registry, with the records that others have of their tasks."""
    registry = work.registry
    registry.add_target(work.request.target)
    keys: list[TaskKey] = []
    for model in prepared:
        registry.add_workloads([task.workload for task in model.tasks])
        weights = [(task.key, task.weight) for task in model.tasks]
        registry.add_model(model.digest, model.path.name, weights)
        keys += [task.key for task in model.tasks]
    take_in(keys, work.ledger, work.indexes, work.report)


def take_in(
    keys: Iterable[TaskKey], ledger: Ledger, indexes: Sequence[Path], report: Report
) -> None:
    """Add the records of a lock and of layers to the registry.

    indexes: registries of the layers' present contents.
    """
    request, registry = ledger.request, ledger.registry
    if request.lock is None and not indexes:
        return
    registry.add_target(request.target)
    if request.lock is not None and request.lock.exists():
        records = read_lock(request.lock, request.target, ledger.tvm, request.remake).records
        known = registry.known(records)
        ledger.add_locked(record for key, record in records.items() if key in known)
    if indexes:
        keys = list(keys)
        bring_in(indexes, keys, registry, report.warn)
        _bring_in_like(indexes, keys, ledger, report)


def _bring_in_like(
    indexes: Sequence[Path], keys: Sequence[TaskKey], ledger: Ledger, report: Report
) -> None:
    """Add records of machines like the request's, for tasks that have none here."""
    registry, target = ledger.registry, ledger.request.target
    unknown = [key for key in keys if not registry.ranking(key)]
    here = {machine.fingerprint for machine in registry.like(target)}
    for machine in like(indexes, target, unknown, report.warn):
        if machine.fingerprint not in here:
            registry.add_target(machine)
        theirs = [TaskKey(key.workload, machine.fingerprint) for key in unknown]
        bring_in(indexes, theirs, registry, report.warn)
