"""Records of other versions of TVM, tried with this one: replayed, checked, measured, settled.

Nothing of such a record is believed but that its trace is worth trying: whether it still replays,
what it computes and how fast that is comes out here, as it does for a candidate of a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import __version__
from .._tvm import VERSION
from ..codegen.model import schedule
from ..measure.outcome import INFRASTRUCTURE, Outcome
from ..registry.leases import Holder
from ..registry.record import Record
from ..registry.stale import stale
from ..search.context import SearchContext
from ..space.default import default_schedule
from ..space.rule import rule_set
from ..space.trace import dump
from .final import begin_final, end_final
from .ledger import measurement, now, provenance
from .queue import open_measurer

if TYPE_CHECKING:
    from ..devices.machine import Place
    from ..measure.measurer import Measurer
    from ..model.tasks import Task
    from ..registry.record import Provenance
    from ..registry.store import Registry
    from ..report import Report
    from ..request import Request

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
        """As printed by `registry revalidate --json`."""
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


def revalidate_tasks(
    tasks: Sequence[Task],
    request: Request,
    registry: Registry,
    report: Report,
    place: Place,
    most: int,
) -> list[Retrial]:
    """Try the best `most` records of each other version of TVM that the tasks have.

    What comes out of a task is in the registry before the next is begun. Tasks that another
    process is tuning are left to it, with a warning.
    """
    found = {task.key: stale(registry, task.key, VERSION, most) for task in tasks}
    wanted = [task for task in tasks if found[task.key]]
    if not wanted:
        return []
    with ExitStack() as stack:
        measurer = stack.enter_context(open_measurer(request, report, place, stack))
        holder = Holder.here()
        stack.callback(registry.release, holder)
        granted = set(registry.lease([task.key for task in wanted], holder))
        made = []
        for task in wanted:
            if task.key not in granted:
                report.warn(f"{task.name} is being tuned, and left to that process")
                continue
            report.stage("revalidate", f"{task.name}: {len(found[task.key])} records")
            made.append(_Trial(task, request, registry, measurer).hold(found[task.key]))
            registry.renew(holder)
    return made


@dataclass(frozen=True)
class _Trial:
    """One task before the measurer."""

    task: Task
    request: Request
    registry: Registry
    measurer: Measurer

    def hold(self, records: Sequence[Record]) -> Retrial:
        """Try the records, and let those that are right run against what stood before."""
        key = self.task.key
        best = self.registry.best([key], VERSION).get(key)
        outcomes = self._measured(records)
        if right := self._keep(records, outcomes):
            # What was the best there stands unless something else surely is, as in a search.
            best = self._settle(best or right[0])
            self._end(records, right, best)
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
            schedule(self.task, record)
        except Exception as error:  # noqa: BLE001 - TVM raises whatever its C++ happened to check
            lines = str(error.__cause__ or error).strip().splitlines()
            return (lines or [type(error).__name__])[-1].strip()[:_MESSAGE_CHARS]
        return ""

    def _keep(self, records: Sequence[Record], outcomes: Sequence[Outcome]) -> list[Record]:
        """All as measurements, so that none is tried again; what is right as records, returned."""
        context = SearchContext(self.request.target, ())
        measured, right = [], []
        for record, outcome in zip(records, outcomes, strict=True):
            if outcome.error == INFRASTRUCTURE:
                continue
            key, trace, seconds, error = record.key, outcome.trace, outcome.seconds, outcome.error
            where = _where(record.provenance, outcome.device)
            features = None if error == MISFIT else context.features(self.task, trace)
            measured.append(measurement(key, outcome, where, features))
            if outcome.proof and not error:
                right.append(Record(key, trace, seconds, outcome.proof, where))
        self.registry.add_batch(measured, right)
        return right

    def _settle(self, before: Record) -> Record | None:
        """In turns: what is right, what stood before, and the default schedule."""
        target = self.request.target
        rules = rule_set(self.request.rules, target.kind)
        default = dump(default_schedule(self.task.mod, target, rules).trace)
        here = provenance("default", "", self.request.seed)
        final = begin_final(self.task, before, default, self.measurer)
        return end_final(final, self.measurer, self.registry, here)

    def _end(self, records: Sequence[Record], right: Sequence[Record], best: Record | None) -> None:
        """Where one of them is the best, the search that found it need not be made again."""
        if best is None or best.trace not in {record.trace for record in right}:
            return
        versions = {record.provenance.tvm for record in records}
        ends = [end for end in self.registry.ends(self.task.key) if end.tvm in versions]
        if ends:
            last = max(ends, key=lambda end: end.enough_for)
            end = replace(last, tvm=VERSION, trials=0, reason="revalidated", created=now())
            self.registry.add_searches([end])


def _where(found: Provenance, device: str) -> Provenance:
    """Of a record measured here and now that was found there and then."""
    return replace(found, tool=__version__, tvm=VERSION, device=device, created=now())
