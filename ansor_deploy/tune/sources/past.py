"""Records of other versions of TVM, tried with this one: replayed, checked, measured, settled.

Such a record only says that its trace is worth trying. Whether the trace still replays, what it
computes and how fast it is are found out here, as for a candidate of a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...codegen.model import schedule
from ...measure.measurer import Measurer
from ...measure.outcome import Outcome
from ...model.tasks import Task
from ...registry.leases import Holder
from ...registry.record import Provenance, Record, TaskKey
from ...system.machine_fault import raise_if_fault
from ...system.words import count
from ..workspace import Workspace
from . import Source, try_out

MISFIT = "replay"  # error of a trace that cannot be replayed on its program
_MESSAGE_CHARS = 600


@dataclass(frozen=True)
class Retrial:
    """The outcome of trying a task's records of other versions of TVM.

    tried: these records. outcomes: their outcomes, in the same order. best: the record that a build
    uses from now on; None where no right program is known.
    """

    task: Task
    tried: tuple[Record, ...]
    outcomes: tuple[Outcome, ...]
    best: Record | None

    @property
    def right(self) -> int:
        """How many of them are right with this version."""
        return sum(not outcome.error for outcome in self.outcomes)

    @property
    def pairs(self) -> list[tuple[Record, Outcome]]:
        """Each record that was tried with its outcome."""
        return list(zip(self.tried, self.outcomes, strict=True))


def outdated(tasks: Sequence[Task], work: Workspace, most: int) -> dict[TaskKey, list[Record]]:
    """The best `most` records of each other version of TVM; tasks without any are left out."""
    tvm = work.ledger.tvm
    found = {task.key: work.registry.stale(task.key, tvm, most) for task in tasks}
    return {key: records for key, records in found.items() if records}


def revalidate_tasks(
    tasks: Sequence[Task], records: Mapping[TaskKey, Sequence[Record]], work: Workspace
) -> list[Retrial]:
    """Try the records of each task that has some.

    A task's results are in the registry before the next task begins. Tasks that another process is
    tuning are left to it, with a warning.
    """
    if not records:
        return []
    holder, registry = Holder.here(), work.registry
    made = []
    try:
        granted = set(registry.lease(list(records), holder))
        with work.measuring() as measurer:
            for task in tasks:
                if task.key in granted:
                    made.append(_revalidate(Past(task, records[task.key], work), measurer))
                    registry.renew(holder)
                elif task.key in records:
                    work.report.warn(f"{task.name} is being tuned, and left to that process")
    finally:
        registry.release(holder)
    return made


def _revalidate(source: Past, measurer: Measurer) -> Retrial:
    tried = count(len(source.records), "record")
    source.work.report.stage("revalidate", f"{source.task.name}: {tried}")
    best = try_out(source, measurer)
    return Retrial(source.task, source.records, source.outcomes, best)


class Past(Source):
    """A task's records of other versions of TVM."""

    alone = True

    def __init__(self, task: Task, records: Sequence[Record], work: Workspace) -> None:
        super().__init__(task, work)
        self.records = tuple(records)
        self._found: dict[str, Outcome] = {}

    def propose(self, most: int = 1) -> Mapping[str, Provenance]:
        """Once: the records that this version can replay. The others become failed measurements."""
        if self._found:
            return {}
        for one in self.records:
            if why := self._misfit(one):
                self._found[one.trace] = Outcome(one.trace, error=MISFIT, message=why)
        origins, ledger = {one.trace: one.provenance for one in self.records}, self.work.ledger
        ledger.add(
            self.task.key,
            list(self._found.values()),
            lambda one: ledger.measured(origins[one.trace], ""),
            lambda _: None,
        )
        return {trace: origin for trace, origin in origins.items() if trace not in self._found}

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each record, in order, once all were tried."""
        return tuple(self._found[one.trace] for one in self.records)

    def observe(self, outcomes: Sequence[Outcome]) -> bool:
        """Keep the outcome of each record."""
        self._found |= {one.trace: one for one in outcomes}
        return True

    def end(self, best: Record | None) -> None:
        """If one of the records is the best, record that its search need not be repeated."""
        right = {one.trace for one in self.outcomes if not one.error}
        if best is not None and best.trace in right:
            versions = {one.provenance.tvm for one in self.records}
            self.work.ledger.add_revalidated(best, versions)

    def _misfit(self, record: Record) -> str:
        """Why a record's trace cannot be replayed on its program; "" if it can."""
        try:
            schedule(self.task, record, self.work.request.target)
        except Exception as error:  # noqa: BLE001 - TVM raises whatever its C++ happened to check
            raise_if_fault(error)
            lines = str(error.__cause__ or error).strip().splitlines()
            return (lines or [type(error).__name__])[-1].strip()[:_MESSAGE_CHARS]
        return ""
