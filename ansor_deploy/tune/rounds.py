"""One go at some tasks: scheduler -> search -> measure, every batch into the registry at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._tvm import VERSION
from ..errors import DeviceError
from ..measure.outcome import INFRASTRUCTURE
from ..registry.record import Record, SearchEnd
from ..search import Search, has_first_guess, open_search
from ..search.context import SearchContext, open_context
from ..space.default import default_schedule
from ..space.rule import rule_set, rule_set_digest
from ..space.trace import dump
from ..system.interrupt import check
from .final import Final, begin_final, end_final
from .ledger import measurement, now, provenance
from .plan import PlanRow
from .scheduler import BATCH, Progress, Round, Scheduler, Standing

if TYPE_CHECKING:
    from ..measure.measurer import Batch, Measurer
    from ..measure.outcome import Outcome
    from ..model.tasks import Task
    from ..registry.leases import Holder
    from ..registry.record import Provenance
    from ..registry.store import Registry
    from ..report import Report
    from ..request import Request
    from .plan import Plan

# Budgets above any that a user asks for: a search that stopped improving is enough for all.
ALWAYS = 1 << 40


@dataclass(frozen=True)
class _UnderWay:
    """A batch that was sent to be measured. why: the scheduler's reason for its task."""

    standing: Standing
    why: str
    submitted: Batch


class Tuning:
    """Spends a request's budget on some rows of a plan, which nobody else is tuning.

    Each batch is in the registry once it is measured, and what is measured of one that is
    interrupted.
    """

    def __init__(
        self,
        plan: Plan,
        rows: Sequence[PlanRow],
        request: Request,
        registry: Registry,
        report: Report,
        measurer: Measurer,
        holder: Holder,
    ) -> None:
        self.holder = holder
        self.request, self.registry, self.report = request, registry, report
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
        self.scheduler = Scheduler(
            standings, request.budget, _fixed(plan, rows), request.objective, request.seed
        )
        self.context = _context(request, registry, report)
        self.before = {row.task.key: row.record for row in rows}
        self.searches: dict[str, Search] = {}
        self.rounds: list[Round] = []
        self.trials = self.failed = self.under_way = 0
        self.began = time.monotonic()

    def spend(self) -> None:
        """Batch after batch; at the end, settle the winners and note which searches are over."""
        under_way: deque[_UnderWay] = deque()
        try:
            self._measure(under_way)
        except BaseException:  # interrupted, or no device is left
            for batch in under_way:
                self._keep(batch.standing, _known(batch.submitted.outcomes))
            raise
        self._settle()
        created = now()
        looked_at = [s for s in self.scheduler.standings if s.history or s.measured]
        # What is good enough for one goal may not be for another: that search is not over.
        over = [s for s in looked_at if s.ended != "goal"]
        self.registry.add_searches([self._end(standing, created) for standing in over])

    def _measure(self, under_way: deque[_UnderWay]) -> None:
        """Until nothing is left. under_way: the batches that were begun and have not ended."""
        while True:
            while len(under_way) < self.measurer.depth and (batch := self._begin()) is not None:
                under_way.append(batch)
            if not under_way:
                break
            outcomes = self.measurer.wait(under_way[0].submitted)
            self._end_batch(under_way.popleft(), outcomes)

    def note_cost(self) -> None:
        """What the trials took, for the price of the next plan."""
        if self.trials:
            self.registry.add_tuning(
                self.request.target.fingerprint,
                self.request.search,
                self.trials,
                time.monotonic() - self.began,
                now(),
            )

    def _left(self) -> int:
        """Trials that the budget still allows; 0 once its time is over."""
        budget = self.request.budget
        if budget.seconds is not None and time.monotonic() - self.began >= budget.seconds:
            return 0
        spent = self.trials + self.under_way
        return 1 << 30 if budget.trials is None else budget.trials - spent

    def _begin(self) -> _UnderWay | None:
        """The next batch on its way to a device; None where nothing is left, or not now."""
        check()
        while (left := self._left()) > 0 and (chosen := self.scheduler.next()) is not None:
            standing, why = chosen
            count = min(BATCH, left, self.request.budget.per_task - standing.trials)
            if traces := self._propose_safely(standing, max(1, count)):
                submitted = self.measurer.submit(standing.task, traces, standing.best)
                standing.busy = True
                self.under_way += len(traces)
                return _UnderWay(standing, why, submitted)
            standing.stale, standing.ended = 0, "exhausted"
            standing.history.append(standing.best)
        return None

    def _end_batch(self, batch: _UnderWay, outcomes: Sequence[Outcome]) -> None:
        standing = batch.standing
        self.under_way -= len(outcomes)
        standing.busy = False
        known = _known(outcomes)
        if not known:
            raise DeviceError(f"nothing can be built: {outcomes[0].message}", "see the farm's logs")
        self._keep(standing, known)
        self.registry.renew(self.holder)
        if standing.task.key.workload in self.searches:
            self.searches[standing.task.key.workload].observe(known)
        standing.observe(min(outcome.latency for outcome in known), len(known))
        self.trials += len(known)
        self.failed += sum(bool(outcome.error) for outcome in known)
        self.rounds.append(self._round(standing, len(known), batch.why))
        self.report.progress(self._progress(standing, batch.why))

    def _settle(self) -> None:
        """Let the best few of every task that was searched run against each other."""
        searched = [s for s in self.scheduler.standings if s.task.key.workload in self.searches]
        if searched:
            self.report.stage("settle", f"the best few of {len(searched)} tasks in turns")
        under_way: deque[tuple[Standing, Final]] = deque()
        for standing in searched:
            check()
            task = standing.task
            default = self._default(task)
            before = self.before.get(task.key)
            under_way.append((standing, begin_final(task, before, default, self.measurer)))
            if len(under_way) == self.measurer.depth:
                self._end_final(*under_way.popleft())
        for one in under_way:
            self._end_final(*one)

    def _end_final(self, standing: Standing, final: Final) -> None:
        record = end_final(final, self.measurer, self.registry, self._where())
        if record is not None:
            standing.best = record.latency

    def _propose_safely(self, standing: Standing, count: int) -> list[str]:
        """A search that fails costs its task the tuning, and no other task anything."""
        try:
            return self._propose(standing, count)
        except Exception as error:  # noqa: BLE001 - TVM raises whatever its C++ happened to check
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            self.report.warn(f"{standing.task.name}: the search failed: {reason}")
            return []

    def _propose(self, standing: Standing, count: int) -> list[str]:
        """One program first, a cheap look at every task: the search's own guess, or the default."""
        task, workload = standing.task, standing.task.key.workload
        if not standing.measured and not standing.history:
            if not has_first_guess(self.request.search, task, self.context):
                return [self._default(task)]
            count = 1
        if workload not in self.searches:
            known = list(self.registry.measurements(task.key.target, task.key))
            self.searches[workload] = open_search(self.request.search, task, known, self.context)
        return self.searches[workload].propose(count)

    def _default(self, task: Task) -> str:
        """Trace of a task's default schedule."""
        return dump(default_schedule(task.mod, self.context.target, self.context.rules).trace)

    def _keep(self, standing: Standing, outcomes: Sequence[Outcome]) -> None:
        """All outcomes as measurements; those that are right and as good as any as records."""
        searched = standing.task.key.workload in self.searches
        search = self.request.search if searched else "default"
        task, key = standing.task, standing.task.key
        measurements = [
            measurement(key, o, self._where(search, o.device), self.context.features(task, o.trace))
            for o in outcomes
        ]
        best = standing.best if standing.measured else float("inf")
        records = [
            Record(key, o.trace, o.seconds, o.proof, self._where(search, o.device))
            for o in outcomes
            if not o.error and o.proof and o.latency < best
        ]
        self.registry.add_batch(measurements, records)

    def _where(self, search: str = "", device: str = "") -> Provenance:
        rules = rule_set_digest(self.context.rules)
        return provenance(search or self.request.search, device, self.request.seed, rules)

    def _end(self, standing: Standing, created: str) -> SearchEnd:
        final = {"no improvement": ALWAYS, "exhausted": ALWAYS}
        reason = standing.ended or "budget"
        return SearchEnd(
            key=standing.task.key,
            tvm=VERSION,
            search=self.request.search,
            trials=standing.trials,
            reason=reason,
            enough_for=final.get(reason, self.request.budget.per_task),
            created=created,
        )

    def _round(self, standing: Standing, trials: int, why: str) -> Round:
        return Round(
            task=standing.task.name,
            key=standing.task.key.workload,
            trials=trials,
            why=why,
            best_ms=standing.best * 1e3,
            end_to_end_ms=self.scheduler.end_to_end * 1e3,
        )

    def _progress(self, standing: Standing, why: str) -> Progress:
        elapsed = time.monotonic() - self.began
        total = min(self.trials + self.scheduler.trials_left(), self.trials + self._left())
        left = elapsed / self.trials * max(0, total - self.trials)
        if self.request.budget.seconds is not None:
            left = min(left, max(0.0, self.request.budget.seconds - elapsed))
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


def _context(request: Request, registry: Registry, report: Report) -> SearchContext:
    rules = rule_set(request.rules, request.target.kind)
    return open_context(registry, request.target, rules, request.seed, report.warn)


def _fixed(plan: Plan, tuned: Sequence[PlanRow]) -> list[float]:
    """Seconds of each model in tasks that are not tuned."""
    keys = {row.task.key for row in tuned}
    rest = [row for row in plan.rows if row.task.key not in keys]
    models = range(len(plan.models))
    return [sum(row.task.per_model[model] * row.latency for row in rest) for model in models]


def _known(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those that say something of their candidates."""
    return [outcome for outcome in outcomes if outcome.error != INFRASTRUCTURE]
