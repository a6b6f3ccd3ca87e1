"""A neighbour's schedule, made to fit by the rules, serves a task without a search.

It runs in turns with the default schedule, which becomes the record unless the other is surely
faster. Where nothing can be measured, the schedule is borrowed, since it is better than a guess.
It is then no record, because it was never timed: the first machine that measures starts without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...model.tasks import Task
from ...registry.record import Provenance, Record, TaskKey
from ...space.trace import dump
from ...system.words import count
from ..lenders import Lenders
from ..search.neighbours import Neighbour
from ..search.refit import fitting
from ..workspace import Workspace
from . import Source


@dataclass(frozen=True)
class Loan:
    """A neighbour's schedule that was made to fit a task. schedule: a record without a time."""

    schedule: Record
    lender: Neighbour


def loan_of(task: Task, neighbours: Sequence[Neighbour], work: Workspace) -> Loan | None:
    """The nearest neighbour's best schedule that fits a task; None where none does."""
    for lender, made in fitting(task, neighbours, work.request.target, work.rules):
        origin = work.ledger.provenance("near", "", made.sketch.rules)
        return Loan(Record(task.key, dump(made.sch.trace), (), {}, origin), lender)
    return None


def borrow(tasks: Sequence[Task], found: Lenders, work: Workspace) -> dict[TaskKey, Loan]:
    """The schedules that neighbours lend to these tasks, where one fits."""
    wanted = [task for task in tasks if task.key in found]
    if wanted:
        served = count(len(wanted), "task")
        work.report.stage("reuse", f"schedules of neighbours for {served}, untimed")
    loans = {}
    for done, task in enumerate(wanted, 1):
        if (loan := loan_of(task, found[task.key], work)) is not None:
            loans[task.key] = loan
        work.report.step("tasks", done, len(wanted))
    return loans


class Near(Source):
    """The nearest neighbour's best schedule that fits a task, and the default schedule."""

    def __init__(self, task: Task, neighbours: Sequence[Neighbour], work: Workspace) -> None:
        super().__init__(task, work)
        self._neighbours, self._left = neighbours, True

    def propose(self, most: int = 1) -> Mapping[str, Provenance]:
        """Once: the schedule that fits, if any, and the default schedule."""
        if not self._left:
            return {}
        self._left = False
        work, task = self.work, self.task
        default = {work.default_trace(task): work.default_origin(task)}
        if (loan := loan_of(task, self._neighbours, work)) is None:
            return default
        return {loan.schedule.trace: loan.schedule.provenance} | default

    def end(self, best: Record | None) -> None:
        """Record that the task is served, if it has a record."""
        if best is not None:
            self.work.ledger.add_served(best)
