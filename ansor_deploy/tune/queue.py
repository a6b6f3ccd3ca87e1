"""Tune what a plan misses, beside other processes that may be tuning the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .._tvm import VERSION
from ..registry.leases import Holder
from .plan import settled
from .reuse import serve
from .rounds import Tuning

if TYPE_CHECKING:
    from ..devices.machine import Place
    from ..measure.measurer import Measurer
    from ..registry.keys import TaskKey
    from ..registry.store import Registry
    from ..report import Report
    from ..request import Budget, Request
    from .plan import Plan, PlanRow
    from .scheduler import Round

POLL_SECONDS = 1.0  # between two looks at a task that another process is tuning


@dataclass(frozen=True)
class Tuned:
    """What a run spent, batch by batch."""

    trials: int = 0
    seconds: float = 0.0
    rounds: tuple[Round, ...] = ()


def tune_plan(
    plan: Plan, request: Request, registry: Registry, report: Report, place: Place
) -> Tuned:
    """Tune the plan's misses until they have had enough or the budget ends.

    Where near is good enough, neighbours serve tasks that have some, which costs no trials. What
    another process is tuning is left to it: the rest is tuned first, and then waited for.
    """
    missing = [row for row in plan.rows if row.status in ("miss", "near")]
    near = [row for row in missing if row.neighbours and request.reuse == "near"]
    if not near and (not missing or request.budget.trials == 0):
        return Tuned()
    with ExitStack() as stack:
        measurer = stack.enter_context(open_measurer(request, report, place, stack))
        holder = Holder.here()
        stack.callback(registry.release, holder)
        turns = _Turns(plan, request, registry, report, measurer, holder)
        served = turns.serve(near)
        return turns.take([row for row in missing if row.task.key not in served])


def open_measurer(request: Request, report: Report, place: Place, stack: ExitStack) -> Measurer:
    """What builds and measures a request's candidates. stack: closes the farm, if there is one."""
    from ..measure.farm import open_farm
    from ..measure.measurer import Measurer

    farm = stack.enter_context(open_farm(request.farm)) if request.farm else None
    return Measurer(
        request.target, place.sites, request.seed, farm, warn=report.warn, unfit=place.unfit
    )


@dataclass
class _Turns:
    """The goes that a run takes at its tasks: at all that are free, until none is left."""

    plan: Plan
    request: Request
    registry: Registry
    report: Report
    measurer: Measurer
    holder: Holder
    began: float = field(default_factory=time.monotonic)
    trials: int = 0
    rounds: list[Round] = field(default_factory=list)

    def take(self, missing: Sequence[PlanRow]) -> Tuned:
        waited = False
        while missing and not self._spent():
            granted = set(self.registry.lease([row.task.key for row in missing], self.holder))
            mine = [row for row in missing if row.task.key in granted]
            if mine := self._still_missed(mine):
                self._tune(mine)
            self.registry.release(self.holder, granted)
            missing = [row for row in missing if row.task.key not in granted]
            if missing and not granted:
                if not waited:
                    self._tell(missing)
                waited = True
                time.sleep(POLL_SECONDS)
        return Tuned(self.trials, time.monotonic() - self.began, tuple(self.rounds))

    def serve(self, near: Sequence[PlanRow]) -> set[TaskKey]:
        """Let neighbours serve what nobody else is tuning; the tasks that now have a record."""
        if not near:
            return set()
        self.report.stage("reuse", f"schedules of neighbours for {len(near)} tasks")
        granted = set(self.registry.lease([row.task.key for row in near], self.holder))
        left = self._still_missed([row for row in near if row.task.key in granted])
        unserved = {
            row.task.key
            for row in left
            if not serve(row, self.request, self.registry, self.measurer, self.report)
        }
        self.registry.release(self.holder, granted)
        return granted - unserved

    def _tune(self, rows: Sequence[PlanRow]) -> None:
        request = replace(self.request, budget=self._left())
        tuning = Tuning(
            self.plan, rows, request, self.registry, self.report, self.measurer, self.holder
        )
        try:
            tuning.spend()
        finally:
            self.trials += tuning.trials
            self.rounds += tuning.rounds
            tuning.note_cost()
            tuning.context.model.save()

    def _still_missed(self, rows: Sequence[PlanRow]) -> list[PlanRow]:
        """Without those that another process has tuned meanwhile."""
        keys = [row.task.key for row in rows]
        records = self.registry.best(keys, VERSION)
        enough = self.registry.enough_for(keys, VERSION)
        return [
            row
            for row in rows
            if not (row.task.key in records and settled(enough.get(row.task.key), self.request))
        ]

    def _left(self) -> Budget:
        budget = self.request.budget
        trials, seconds = budget.trials, budget.seconds
        if trials is not None:
            trials = max(0, trials - self.trials)
        if seconds is not None:
            seconds = max(0.0, seconds - (time.monotonic() - self.began))
        return replace(budget, trials=trials, seconds=seconds)

    def _spent(self) -> bool:
        left = self._left()
        return left.trials == 0 or left.seconds == 0

    def _tell(self, missing: Sequence[PlanRow]) -> None:
        other = self.registry.leaseholder(missing[0].task.key)
        count = "1 task" if len(missing) == 1 else f"{len(missing)} tasks"
        self.report.stage("wait", f"for {other or 'another process'}, which tunes {count}")
