"""Where nothing can be measured, the schedules that neighbours lend: better defaults than guesses.

A build whose code runs nowhere asks the registry for the same programs, tuned for machines with
the same core, and for others of their families. What they lend is made to fit by the rules. Nobody
has timed it here, so that it is no record, and the first machine that measures begins without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..registry.record import Record, TaskKey
from ..system.digest import canonical_json, sha256
from ..system.words import count
from .search.neighbours import Neighbour, nearest

if TYPE_CHECKING:
    from ..model.tasks import Task
    from .ledger import Ledger
    from .workspace import Workspace

Lenders = dict[TaskKey, list[Neighbour]]


@dataclass(frozen=True)
class Loan:
    """A neighbour's schedule, made to fit a task. schedule: a record without a time."""

    schedule: Record
    lender: Neighbour


def lenders(lacking: Collection[TaskKey], ledger: Ledger) -> Lenders:
    """Neighbours of tasks without a record, the same program first, where nothing can be run.

    No compiler is loaded for that: an unchanged build asks, too.
    """
    if ledger.measures or not lacking:
        return {}
    known = ledger.registry.workloads(lacking)
    asked = {key: known[key.workload] for key in lacking if key.workload in known}
    found = nearest(asked, ledger.registry, ledger.tvm, ledger.request.target)
    return {
        key: sorted(several, key=lambda one: one.workload.key != key.workload)
        for key, several in found.items()
    }


def lenders_digest(found: Mapping[TaskKey, Sequence[Neighbour]]) -> str | None:
    """SHA-256 over what would be lent; None where nothing is."""
    said = [
        [key.workload, one.workload.key, one.machine and one.machine.fingerprint, list(one.traces)]
        for key, several in sorted(found.items(), key=lambda pair: pair[0].workload)
        for one in several
    ]
    return sha256(canonical_json(said)) if said else None


def borrow(tasks: Sequence[Task], found: Lenders, work: Workspace) -> dict[TaskKey, Loan]:
    """What neighbours lend to these tasks, as far as it fits them."""
    wanted = [task for task in tasks if task.key in found]
    if wanted:
        served = count(len(wanted), "task")
        work.report.stage("reuse", f"schedules of neighbours for {served}, untimed")
    loans = {}
    for done, task in enumerate(wanted, 1):
        if (loan := _loan(task, found[task.key], work)) is not None:
            loans[task.key] = loan
        work.report.step("tasks", done, len(wanted))
    return loans


def _loan(task: Task, several: Sequence[Neighbour], work: Workspace) -> Loan | None:
    from ..space.trace import dump
    from .search.refit import fitting

    for lender, sch in fitting(task, several, work.request.target, work.rules):
        if _is_small(sch, work):
            provenance = work.ledger.provenance("near", "")
            return Loan(Record(task.key, dump(sch.trace), (), {}, provenance), lender)
    return None


def _is_small(sch: Any, work: Workspace) -> bool:
    from ..space.code_size import MOST_OPERATIONS, code_size

    return code_size(sch, work.request.target) <= MOST_OPERATIONS
