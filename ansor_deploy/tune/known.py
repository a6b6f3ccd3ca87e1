"""Models into the registry, and with them what others know of their tasks: in a lock, in layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ..registry.lock import read_lock
from ..registry.record import SearchEnd
from .plan import SERVED

if TYPE_CHECKING:
    from ..model.prepare import Prepared
    from ..registry.keys import TaskKey
    from ..registry.record import Record
    from ..registry.store import Registry
    from ..report import Report
    from ..request import Budget, Request


def read(
    models: Iterable[Path], request: Request, registry: Registry, report: Report
) -> list[Prepared]:
    """The models; what is known of them by now is in the registry."""
    from ..model.prepare import prepare

    prepared = [prepare(m, request.target, request.input_shapes, report.stage) for m in models]
    note(prepared, request, registry, report)
    return prepared


def note(
    prepared: Iterable[Prepared], request: Request, registry: Registry, report: Report
) -> None:
    """Make models known to the registry, with what others know of their tasks."""
    registry.add_target(request.target)
    keys: list[TaskKey] = []
    for model in prepared:
        registry.add_workloads([task.workload for task in model.tasks])
        weights = [(task.key, task.weight) for task in model.tasks]
        registry.add_model(model.digest, model.path.name, weights)
        keys += [task.key for task in model.tasks]
    adopt(request, registry, keys, report)


def adopt(request: Request, registry: Registry, keys: Iterable[TaskKey], report: Report) -> None:
    """What others have tuned, and left in the lock or in a layer, is known here as well."""
    if request.lock is None and not request.indexes:
        return
    registry.add_target(request.target)
    if request.lock is not None:
        _adopt_lock(request.lock, request, registry)
    if request.indexes:
        from ..registry.layers import bring_in

        bring_in(request.indexes, keys, registry, report.warn)


def with_indexes(request: Request, report: Report) -> Request:
    """The request with its layers brought up to date; one that cannot be is left out."""
    if not request.layers:
        return request
    from ..registry.layers import indexes

    return replace(request, indexes=indexes(request.layers, report.warn))


def _adopt_lock(lock: Path, request: Request, registry: Registry) -> None:
    """Take the records of a lock into the registry, for the workloads that it knows.

    Whoever wrote the lock has tuned them as far as a normal effort goes: they are not tuned again.
    """
    if not lock.exists():
        return
    tvm = metadata.version("apache-tvm")
    locked = read_lock(lock, request.target, tvm)
    known = registry.known(locked.records)
    records = [record for key, record in locked.records.items() if key in known]
    registry.add_batch([], records)
    enough = registry.enough_for(known, tvm)
    ends = [
        _locked_end(record, request.budget)
        for record in records
        if enough.get(record.key, SERVED) == SERVED
    ]
    registry.add_searches(ends)


def _locked_end(record: Record, budget: Budget) -> SearchEnd:
    return SearchEnd(
        key=record.key,
        tvm=record.provenance.tvm,
        search=record.provenance.search,
        trials=0,
        reason="locked",
        enough_for=budget.per_task,
        created=record.provenance.created,
    )
