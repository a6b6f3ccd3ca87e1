"""Spend the budget: scheduler -> search -> measure, every batch into the registry at once."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from . import __version__
from ._tvm import VERSION
from .plan import PlanRow
from .registry.record import Measurement, Provenance, Record, SearchEnd
from .report import Progress, Report
from .search import Search, open_search
from .search.default import default_schedule
from .search.scheduler import Scheduler, Standing
from .search.trace import dump

if TYPE_CHECKING:
    from .measure.local import LocalMeasurer
    from .measure.outcome import Outcome
    from .pipeline import Session
    from .plan import Plan
    from .registry.store import Registry

BATCH = 16
# Budgets above any that a user asks for: a search that stopped improving is enough for all.
ALWAYS = 1 << 40


@dataclass(frozen=True)
class Tuned:
    """What a run spent."""

    trials: int
    seconds: float


def tune_plan(plan: Plan, session: Session, registry: Registry, report: Report) -> Tuned:
    """Tune the plan's misses until they have had enough or the budget ends.

    Each batch is in the registry before the next begins: an interruption loses at most one.
    """
    rows = [row for row in plan.rows if row.status == "miss"]
    if not rows or session.budget.trials == 0:
        return Tuned(0, 0.0)
    from .measure.local import LocalMeasurer

    with LocalMeasurer(session.target, session.seed) as measurer:
        run = _Run(plan, rows, session, registry, report, measurer)
        try:
            run.spend()
        finally:
            run.note_cost()
    return Tuned(run.trials, time.monotonic() - run.began)


class _Run:
    def __init__(
        self,
        plan: Plan,
        rows: Sequence[PlanRow],
        session: Session,
        registry: Registry,
        report: Report,
        measurer: LocalMeasurer,
    ) -> None:
        self.session, self.registry, self.report = session, registry, report
        self.measurer = measurer
        spent = registry.trials([row.task.key for row in rows])
        standings = [
            Standing(
                row.task,
                best=row.latency,
                trials=spent[row.task.key],
                measured=row.record is not None,
            )
            for row in rows
        ]
        tuned = {row.task.key for row in rows}
        fixed = sum(r.task.weight * r.latency for r in plan.rows if r.task.key not in tuned)
        self.scheduler = Scheduler(standings, session.budget, fixed)
        self.searches: dict[str, Search] = {}
        self.trials = self.failed = 0
        self.began = time.monotonic()

    def spend(self) -> None:
        """Batch after batch; at the end, note which searches are over and why."""
        while self._left() > 0 and (chosen := self.scheduler.next()) is not None:
            standing, why = chosen
            self._batch(standing, why)
        self.scheduler.next()
        now = _now()
        looked_at = [s for s in self.scheduler.standings if s.history or s.measured]
        self.registry.add_searches([self._end(standing, now) for standing in looked_at])

    def note_cost(self) -> None:
        """What the trials took, for the price of the next plan."""
        if self.trials:
            self.registry.add_tuning(
                self.session.target.fingerprint,
                self.session.search,
                self.trials,
                time.monotonic() - self.began,
                _now(),
            )

    def _left(self) -> int:
        """Trials that the budget still allows; 0 once its time is over."""
        budget = self.session.budget
        if budget.seconds is not None and time.monotonic() - self.began >= budget.seconds:
            return 0
        return 1 << 30 if budget.trials is None else budget.trials - self.trials

    def _batch(self, standing: Standing, why: str) -> None:
        count = min(BATCH, self._left(), self.session.budget.per_task - standing.trials)
        traces = self._propose_safely(standing, max(1, count))
        if not traces:
            standing.stale, standing.ended = 0, "exhausted"
            standing.history.append(standing.best)
            return
        outcomes = self.measurer.measure(standing.task, traces, best=standing.best)
        self._keep(standing, outcomes)
        if standing.task.key.workload in self.searches:
            self.searches[standing.task.key.workload].observe(outcomes)
        standing.observe(min(outcome.latency for outcome in outcomes), len(outcomes))
        self.trials += len(outcomes)
        self.failed += sum(bool(outcome.error) for outcome in outcomes)
        self.report.progress(self._progress(standing, why))

    def _propose_safely(self, standing: Standing, count: int) -> list[str]:
        """A search that fails costs its task the tuning, and no other task anything."""
        try:
            return self._propose(standing, count)
        except Exception as error:  # noqa: BLE001 - TVM raises whatever its C++ happened to check
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            self.report.warn(f"{standing.task.name}: the search failed: {reason}")
            return []

    def _propose(self, standing: Standing, count: int) -> list[str]:
        """The default schedule first, alone: a cheap first look at every task."""
        task, workload = standing.task, standing.task.key.workload
        if not standing.measured and not standing.history:
            return [dump(default_schedule(task.mod, self.session.target).trace)]
        if workload not in self.searches:
            known = list(self.registry.measurements(task.key.target, task.key))
            self.searches[workload] = open_search(
                self.session.search, task, self.session.target, known, self.session.seed
            )
        return self.searches[workload].propose(count)

    def _keep(self, standing: Standing, outcomes: Sequence[Outcome]) -> None:
        """All outcomes as measurements; those that are right and as good as any as records."""
        first = not standing.history and not standing.measured
        provenance = Provenance(
            tool=__version__,
            tvm=VERSION,
            search="default" if first else self.session.search,
            device=platform.node(),
            seed=self.session.seed,
            created=_now(),
        )
        key = standing.task.key
        measurements = [
            Measurement(key, o.trace, o.seconds, o.error, o.message, provenance) for o in outcomes
        ]
        best = standing.best if standing.measured else float("inf")
        records = [
            Record(key, o.trace, o.seconds, o.proof, provenance)
            for o in outcomes
            if not o.error and o.proof and o.latency < best
        ]
        self.registry.add_batch(measurements, records)

    def _end(self, standing: Standing, now: str) -> SearchEnd:
        final = {"no improvement": ALWAYS, "exhausted": ALWAYS}
        reason = standing.ended or "budget"
        return SearchEnd(
            key=standing.task.key,
            tvm=VERSION,
            search=self.session.search,
            trials=standing.trials,
            reason=reason,
            enough_for=final.get(reason, self.session.budget.per_task),
            created=now,
        )

    def _progress(self, standing: Standing, why: str) -> Progress:
        elapsed = time.monotonic() - self.began
        total = min(self.trials + self.scheduler.trials_left(), self.trials + self._left())
        left = elapsed / self.trials * max(0, total - self.trials)
        if self.session.budget.seconds is not None:
            left = min(left, max(0.0, self.session.budget.seconds - elapsed))
        return Progress(
            task=standing.task.name,
            trials=self.trials,
            total_trials=max(total, self.trials),
            failed=self.failed,
            best=standing.best,
            end_to_end=self.scheduler.end_to_end,
            elapsed=elapsed,
            left=left,
            why=why,
        )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
