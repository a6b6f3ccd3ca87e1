"""Records of other versions of TVM, tried with this one: replayed, checked, measured, settled.

Nothing of such a record is believed but that its trace is worth trying: whether it still replays,
what it computes and how fast that is comes out here, as it does for a candidate of a search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..codegen.model import schedule
from ..measure.measurer import Measurer
from ..measure.outcome import Outcome
from ..model.tasks import Task
from ..registry.leases import Holder
from ..registry.record import Provenance, Record, TaskKey
from ..system.machine_fault import heed
from ..system.words import count
from .final import begin_final, end_final
from .search.context import SearchContext
from .workspace import Workspace

MISFIT = "replay"  # error of a trace that its program does not take
_MESSAGE_CHARS = 600


@dataclass(frozen=True)
class Retrial:
    """What became of a task's records of other versions of TVM.

    tried: these records. outcomes: of each, in the same order. best: what a build uses from now
    on; None where nothing right is known.
    """

    task: Task
    tried: tuple[Record, ...]
    outcomes: tuple[Outcome, ...]
    best: Record | None

    @property
    def right(self) -> int:
        """How many of them are right with this version."""
        return sum(not outcome.error for outcome in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """A JSON object, one of the list `tasks` of `registry revalidate --json`."""
        return {
            "name": self.task.name,
            "key": self.task.key.workload,
            "tried": [
                {
                    "record": record.id,
                    "tvm": record.provenance.tvm,
                    "error": outcome.error,
                    "message": outcome.message,
                    "latency_ms": outcome.latency * 1e3,
                }
                for record, outcome in zip(self.tried, self.outcomes, strict=True)
            ],
            "right": self.right,
            "best": self.best.id if self.best else None,
            "latency_ms": self.best.latency * 1e3 if self.best else None,
        }


def outdated(tasks: Sequence[Task], work: Workspace, most: int) -> dict[TaskKey, list[Record]]:
    """The best `most` records of each other version of TVM, of the tasks that have any to try."""
    tvm = work.ledger.tvm
    found = {task.key: work.registry.stale(task.key, tvm, most) for task in tasks}
    return {key: records for key, records in found.items() if records}


def revalidate_tasks(
    tasks: Sequence[Task],
    records: dict[TaskKey, list[Record]],
    work: Workspace,
    measurer: Measurer,
) -> list[Retrial]:
    """Try the records of each task that has some.

    What comes out of a task is in the registry before the next is begun. Tasks that another
    process is tuning are left to it, with a warning.
    """
    holder, registry = Holder.here(), work.registry
    made = []
    try:
        granted = set(registry.lease(list(records), holder))
        for task in tasks:
            if task.key not in records:
                continue
            if task.key not in granted:
                work.report.warn(f"{task.name} is being tuned, and left to that process")
                continue
            tried = count(len(records[task.key]), "record")
            work.report.stage("revalidate", f"{task.name}: {tried}")
            made.append(_Trial(task, work, measurer).hold(records[task.key]))
            registry.renew(holder)
    finally:
        registry.release(holder)
    return made


@dataclass(frozen=True)
class _Trial:
    """One task before the measurer."""

    task: Task
    work: Workspace
    measurer: Measurer

    def hold(self, records: Sequence[Record]) -> Retrial:
        """Try the records, and let those that are right run against what stood before."""
        ledger, key = self.work.ledger, self.task.key
        best = ledger.best([key]).get(key)
        outcomes = self._measured(records)
        if right := self._keep(records, outcomes):
            # What was the best there stands unless something else surely is, as in a search.
            default = self.work.default_trace(self.task)
            final = begin_final(self.task, best or right[0], default, self.measurer)
            best = end_final(final, self.measurer, ledger)
            if best is not None and best.trace in {record.trace for record in right}:
                ledger.add_revalidated(best, {record.provenance.tvm for record in records})
        return Retrial(self.task, tuple(records), tuple(outcomes), best)

    def _measured(self, records: Sequence[Record]) -> list[Outcome]:
        """Each by itself, so that one that crashes or hangs costs the others nothing."""
        misfits = {record.trace: self._misfit(record) for record in records}
        fit = [trace for trace, reason in misfits.items() if not reason]
        found = {t: Outcome(t, error=MISFIT, message=why) for t, why in misfits.items() if why}
        if fit:
            found |= zip(fit, self.measurer.measure(self.task, fit), strict=True)
        return [found[record.trace] for record in records]

    def _misfit(self, record: Record) -> str:
        """Why the program does not take the trace; "" if it does."""
        try:
            schedule(self.task, record, self.work.request.target)
        except Exception as error:  # noqa: BLE001 - TVM raises whatever its C++ happened to check
            heed(error)
            lines = str(error.__cause__ or error).strip().splitlines()
            return (lines or [type(error).__name__])[-1].strip()[:_MESSAGE_CHARS]
        return ""

    def _keep(self, records: Sequence[Record], outcomes: Sequence[Outcome]) -> list[Record]:
        """All as measurements, so that none is tried again; what is right as records, returned."""
        context = SearchContext(self.work.request.target, ())
        found = {record.trace: record.provenance for record in records}

        def origin(one: Outcome) -> Provenance:
            here = self.work.ledger.provenance("", one.device)
            then = found[one.trace]
            return replace(
                then, tool=here.tool, tvm=here.tvm, device=here.device, created=here.created
            )

        def features(one: Outcome) -> bytes | None:
            return None if one.error == MISFIT else context.features(self.task, one.trace)

        return self.work.ledger.add(self.task.key, outcomes, origin, features)
