"""Rounds of tuning: scheduler -> search -> measure; each batch goes to the registry at once."""

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import DeviceError
from ..measure.measurer import Batch, Measurer
from ..measure.outcome import INFRASTRUCTURE, Outcome
from ..registry.leases import Holder
from ..registry.record import Provenance
from ..request import Budget
from ..system.interrupt import check
from ..system.machine_fault import raise_if_fault
from ..system.words import count
from .budget_end import budget_reason
from .limits import limits
from .pace import Pace
from .plan import ASKED, SECONDS_PER_TRIAL, Plan, PlanRow
from .result import Round
from .scheduler import BATCH, FIRST_LOOK, Progress, Scheduler, TaskProgress
from .search.context import open_context
from .sources.searched import Searched
from .trial import Trial, settle
from .workspace import Workspace


@dataclass(frozen=True)
class _UnderWay:
    """A batch that is being measured.

    why: the scheduler's reason to choose its task. proposed: the programs' traces and origins.
    """

    state: TaskProgress
    why: str
    proposed: Mapping[str, Provenance]
    submitted: Batch


class Rounds:
    """Spends a budget on some rows of a plan, which no other process is tuning.

    A batch is written to the registry as soon as it is measured, and so are the finished
    measurements of one that is interrupted.
    """

    def __init__(
        self,
        plan: Plan,
        rows: Sequence[PlanRow],
        budget: Budget,
        work: Workspace,
        measurer: Measurer,
        holder: Holder,
    ) -> None:
        self.work, self.measurer, self.holder = work, measurer, holder
        self.budget, self.ledger = budget, work.ledger
        request = work.request
        states = _states(rows, work)
        fixed = _fixed(plan, rows)
        self.scheduler = Scheduler(states, budget, fixed, request.objective, request.seed)
        self.context = open_context(
            work.registry, request.target, work.rules, request.seed, work.report.warn_once
        )
        each = work.registry.seconds_per_trial(request.target.fingerprint)
        self.plan, self.pace = plan, Pace(each or SECONDS_PER_TRIAL)
        self.before = {row.task.key: row.record for row in rows}
        self.sources = {
            state.task.key: Searched(state.task, work, self.context, known=state.measured)
            for state in states
        }
        self.rounds: list[Round] = []
        self.trials = self.failed = self.under_way = 0
        self.began = time.monotonic()

    def spend(self) -> None:
        """Measure batch after batch; then settle the winners and record which searches are over."""
        under_way: deque[_UnderWay] = deque()
        try:
            self._measure(under_way)
        except BaseException:  # interrupted, or no device is left
            for batch in under_way:
                self._keep(batch, batch.submitted.outcomes)
            raise
        self.scheduler.end_finished()
        self._settle()
        seen = [state for state in self.scheduler.states if state.history or state.measured]
        # A goal ends a search only for itself: another goal may need more, so it is not recorded.
        spent = budget_reason(self.ledger.request.budget)
        self.ledger.add_ends({s.task.key: s.ended or spent for s in seen if s.ended != "goal"})

    def close(self) -> None:
        """Record how long the trials took, and save the cost model for the next run."""
        if self.trials:
            self.ledger.add_cost(self.trials, time.monotonic() - self.began)
        self.context.model.save()

    def _measure(self, under_way: deque[_UnderWay]) -> None:
        """Measure batches until none is left. under_way: batches that were begun and not ended."""
        while True:
            while len(under_way) < self.measurer.depth and (batch := self._begin()) is not None:
                under_way.append(batch)
            if not under_way:
                break
            outcomes = self.measurer.wait(under_way[0].submitted, self._seconds_left())
            self._end_batch(under_way.popleft(), outcomes)

    def _left(self) -> float:
        """Trials that the budget still allows; 0 after its time."""
        seconds, most = self._seconds_left(), self.budget.trials
        if seconds == 0:
            return 0
        left = math.inf if most is None else most - self.trials - self.under_way
        return left if seconds is None else min(left, self.pace.within(seconds))

    def _seconds_left(self) -> float | None:
        """Seconds until the budget's time is over; None where it has none."""
        if self.budget.seconds is None:
            return None
        return max(0.0, self.began + self.budget.seconds - time.monotonic())

    def _begin(self) -> _UnderWay | None:
        """Send the next batch to a device; None where no task is left, or all are busy."""
        check()
        while (left := self._left()) > 0 and (chosen := self.scheduler.next()) is not None:
            state, why = chosen
            count = int(min(BATCH, left, self.budget.per_task - state.trials))
            if proposed := self._propose_safely(state, max(1, count)):
                submitted = self.measurer.submit(state.task, list(proposed), state.best)
                state.busy = True
                self.under_way += len(proposed)
                return _UnderWay(state, why, proposed, submitted)
            state.stale, state.ended = 0, state.ended or "exhausted"
            state.history.append(state.best)
        return None

    def _end_batch(self, batch: _UnderWay, outcomes: Sequence[Outcome]) -> None:
        state = batch.state
        self.under_way -= len(batch.proposed)
        state.busy = False
        known = [outcome for outcome in outcomes if outcome.error != INFRASTRUCTURE]
        if not outcomes:  # the time ended before any candidate ran
            return
        if not known:
            raise DeviceError(f"nothing can be built: {outcomes[0].message}", "see the farm's logs")
        self._keep(batch, known)
        self.work.registry.renew(self.holder)
        self.sources[state.task.key].observe(known)
        state.observe(min(outcome.latency for outcome in known), len(known))
        self.trials += len(known)
        self.failed += sum(bool(outcome.error) for outcome in known)
        self.pace.observe(len(known), time.monotonic() - self.began, look=batch.why == FIRST_LOOK)
        measured = state.best if state.measured else math.inf
        times = measured * 1e3, self._forecast() * 1e3
        names = state.task.name, state.task.title, state.task.key.workload
        self.rounds.append(Round(*names, len(known), batch.why, *times))
        self.work.report.progress(self._progress())

    def _settle(self) -> None:
        """Run the best few programs of every searched task against each other, in turns."""
        searched = [s for s in self.scheduler.states if self.sources[s.task.key].search]
        if searched:
            settled = count(len(searched), "task")
            self.work.report.stage("settle", f"the best few of {settled} in turns")
        under_way: deque[tuple[TaskProgress, Batch]] = deque()
        for state in searched:
            check()
            under_way.append((state, self._begin_turns(state)))
            if len(under_way) == self.measurer.depth:
                self._end_turns(*under_way.popleft())
        for one in under_way:
            self._end_turns(*one)

    def _begin_turns(self, state: TaskProgress) -> Batch:
        task, trial = state.task, self._trial(state)
        traces = trial.contest(self.before[task.key], trial.fastest)
        return self.measurer.submit_head_to_head(task, traces)

    def _end_turns(self, state: TaskProgress, turns: Batch) -> None:
        record = settle(state.task, self.measurer.wait(turns), self.work)
        if record is not None:
            state.best = record.latency

    def _trial(self, state: TaskProgress) -> Trial:
        return Trial(state.task, self.work, self.measurer, self.context)

    def _propose_safely(self, state: TaskProgress, most: int) -> Mapping[str, Provenance]:
        """Propose programs. A search that fails ends the tuning of its own task only."""
        try:
            return self.sources[state.task.key].propose(most)
        except Exception as error:  # noqa: BLE001 - TVM raises whatever its C++ happened to check
            raise_if_fault(error)
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            self.work.report.warn(f"{state.task.name}: the search failed: {reason}")
            state.ended = "failed"
            return {}

    def _keep(self, batch: _UnderWay, outcomes: Sequence[Outcome]) -> None:
        """Keep all outcomes as measurements, and right ones that beat the best as records."""
        below = batch.state.best if batch.state.measured else math.inf
        self._trial(batch.state).keep(outcomes, batch.proposed, below)

    def _progress(self) -> Progress:
        elapsed = time.monotonic() - self.began
        total = int(self.trials + min(self.scheduler.trials_left(), self._left()))
        rest = max(0, total - self.trials)
        looks = min(rest, self.scheduler.looks_left())
        left = self.pace.left(looks, rest - looks)
        if self.budget.seconds is not None:
            left = min(left, max(0.0, self.budget.seconds - elapsed))
        total = max(total, self.trials)
        return Progress(self.rounds[-1], self.trials, total, self.failed, elapsed, left)

    def _forecast(self) -> float:
        """Seconds of one run of all models with the best programs found so far."""
        return self.plan.forecast({s.task.key: s.best for s in self.scheduler.states if s.measured})


def _states(rows: Sequence[PlanRow], work: Workspace) -> list[TaskProgress]:
    """The progress of each row's task before the first batch; with `--retune`, it has no trials."""
    standing = work.ledger.standing(row.task.key for row in rows)
    least = limits([row.task for row in rows], work.request)
    return [
        TaskProgress(
            row.task,
            best=row.latency,
            trials=0 if row.reason == ASKED else standing[row.task.key].spent,
            measured=row.record is not None,
            asked=row.reason == ASKED,
            limit=standing[row.task.key].spent + row.trials if row.trials else math.inf,
            least=least.get(row.task.key, 0.0),
        )
        for row in rows
    ]


def _fixed(plan: Plan, tuned: Sequence[PlanRow]) -> list[float]:
    """Seconds of each model in the tasks that are not tuned."""
    keys = {row.task.key for row in tuned}
    rest = [row for row in plan.rows if row.task.key not in keys]
    models = range(len(plan.models))
    return [sum(row.task.per_model[model] * row.latency for row in rest) for model in models]
