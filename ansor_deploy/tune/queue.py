"""The queue of a plan's missing tasks, which other processes may be tuning at the same time.

A build that tunes nothing does not load what searches and measures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..measure.memory import memory_of_trials
from ..registry.leases import Holder
from ..registry.record import TaskKey
from ..request import Budget, Request
from ..system.words import count, size_text
from .plan import ASKED, Plan, PlanRow
from .result import Round, Spent, TuneResult
from .workspace import Workspace

if TYPE_CHECKING:
    from ..measure.measurer import Measurer

POLL_SECONDS = 1.0  # between two checks of a task that another process is tuning


def tune_missing(plan: Plan, work: Workspace) -> TuneResult:
    """Tune a plan's missing tasks; none where the target's code runs nowhere."""
    spent, (fit, no_room) = Spent(), that_fit(pending(plan, work.request), work)
    if fit:
        work.report.stage("tune", f"{len(fit)} of {len(plan.rows)} tasks")
        with work.measuring() as measurer:
            spent = tune_plan(plan, fit, work, measurer)
    records = work.ledger.best(row.task.key for row in plan.rows)
    return TuneResult.of_plan(plan, spent, records, no_room)


def pending(plan: Plan, request: Request) -> list[PlanRow]:
    """The rows of a plan for which something must be measured."""
    missing = [row for row in plan.rows if row.status in ("miss", "near")]
    if request.budget.trials != 0:
        return missing
    return [row for row in missing if _served_by_others(row, request)]


def that_fit(rows: Sequence[PlanRow], work: Workspace) -> tuple[list[PlanRow], list[str]]:
    """The rows whose trials fit into the devices' memory, and the keys of the other workloads.

    Warnings name the latter. Both are empty where nothing runs the target's code.
    """
    if not rows or work.machine is None:
        return [], []
    if (free := work.machine.least_memory()) is None:
        return list(rows), []
    fit, no_room = [], []
    for row in rows:
        needed = memory_of_trials(row.task, work.request.target)
        if needed <= free:
            fit.append(row)
            continue
        no_room.append(row.task.key.workload)
        work.report.warn(
            f"{row.task.name} is not tuned: its trials take {size_text(needed)} of memory, and "
            f"{work.machine.name} has {size_text(free)} free; when more is free, try again with "
            f"--retune {row.task.name}"
        )
    return fit, no_room


def tune_plan(plan: Plan, rows: Sequence[PlanRow], work: Workspace, measurer: Measurer) -> Spent:
    """Tune rows of a plan until their searches are over or the budget ends.

    With `--reuse near`, neighbours serve the tasks that have some, which costs no trials. Tasks
    that another process is tuning are left to it: this one tunes the others and then waits.
    """
    queue = _Queue(plan, work, measurer, Holder.here())
    try:
        near = [row for row in rows if _served_by_others(row, work.request)]
        served = queue.serve(near)
        return queue.tune([row for row in rows if row.task.key not in served])
    finally:
        work.registry.release(queue.holder)


def _served_by_others(row: PlanRow, request: Request) -> bool:
    return bool(row.neighbours) and request.reuse == "near"


@dataclass
class _Queue:
    """Leases and tunes the tasks that are free, again and again, until none is left."""

    plan: Plan
    work: Workspace
    measurer: Measurer
    holder: Holder
    began: float = field(default_factory=time.monotonic)
    trials: int = 0
    rounds: list[Round] = field(default_factory=list)

    def tune(self, missing: Sequence[PlanRow]) -> Spent:
        waited = False
        while missing and not self._is_spent():
            granted = self._lease(missing)
            mine = [row for row in missing if row.task.key in granted]
            if mine := self._still_missed(mine):
                self._tune(mine)
            self.work.registry.release(self.holder, granted)
            missing = [row for row in missing if row.task.key not in granted]
            if missing and not granted:
                if not waited:
                    self._say_who_is_waited_for(missing)
                waited = True
                time.sleep(POLL_SECONDS)
        return Spent(self.trials, time.monotonic() - self.began, tuple(self.rounds))

    def serve(self, near: Sequence[PlanRow]) -> set[TaskKey]:
        """Let neighbours serve tasks that nobody else is tuning. Returns those with a record."""
        if not near:
            return set()
        from .sources import try_out
        from .sources.near import Near

        self.work.report.stage("reuse", f"schedules of neighbours for {count(len(near), 'task')}")
        granted = self._lease(near)
        left = self._still_missed([row for row in near if row.task.key in granted])
        sources = [Near(row.task, row.neighbours, self.work) for row in left]
        unserved = {s.task.key for s in sources if not try_out(s, self.measurer)}
        self.work.registry.release(self.holder, granted)
        return granted - unserved

    def _lease(self, rows: Sequence[PlanRow]) -> set[TaskKey]:
        return set(self.work.registry.lease([row.task.key for row in rows], self.holder))

    def _tune(self, rows: Sequence[PlanRow]) -> None:
        from .rounds import Rounds

        rounds = Rounds(self.plan, rows, self._left(), self.work, self.measurer, self.holder)
        try:
            rounds.spend()
        finally:
            self.trials += rounds.trials
            self.rounds += rounds.rounds
            rounds.close()

    def _still_missed(self, rows: Sequence[PlanRow]) -> list[PlanRow]:
        """The rows that no other process has tuned in the meantime."""
        standing = self.work.ledger.standing(row.task.key for row in rows)
        return [row for row in rows if row.reason == ASKED or standing[row.task.key].reason]

    def _left(self) -> Budget:
        budget = self.work.request.budget
        trials, seconds = budget.trials, budget.seconds
        if trials is not None:
            trials = max(0, trials - self.trials)
        if seconds is not None:
            seconds = max(0.0, seconds - (time.monotonic() - self.began))
        return replace(budget, trials=trials, seconds=seconds)

    def _is_spent(self) -> bool:
        left = self._left()
        return left.trials == 0 or left.seconds == 0

    def _say_who_is_waited_for(self, missing: Sequence[PlanRow]) -> None:
        other = self.work.registry.leaseholder(missing[0].task.key)
        tunes = f"which tunes {count(len(missing), 'task')}"
        self.work.report.stage("wait", f"for {other or 'another process'}, {tunes}")
