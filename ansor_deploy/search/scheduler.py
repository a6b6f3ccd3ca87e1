"""The task scheduler: which task gets the next batch of trials, and when one has had enough.

The gradient of the end-to-end time with respect to a task's trials (Ansor, section 6.2, its
alpha term): what its last batches gained, and what it would gain if the rest of its time fell
away in proportion to the trials already spent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..model.tasks import Task
from ..plan import Budget

ALPHA = 0.2  # trust in the past against optimism (Ansor's default)
WINDOW = 3  # batches over which the past gain is averaged
PATIENCE = 2  # batches without improvement after which a task is left
IMPROVEMENT = 0.01  # share by which a batch must better the best to count


@dataclass
class Standing:
    """A task in the course of a run. history: best latency in seconds after each batch."""

    task: Task
    best: float
    trials: int = 0
    measured: bool = False
    stale: int = 0
    ended: str = ""
    history: list[float] = field(default_factory=list)

    def observe(self, best_of_batch: float, trials: int) -> None:
        """Take in a batch: its best latency (infinite if all failed) and its size."""
        goal = self.best * (1 - IMPROVEMENT) if self.measured else float("inf")
        self.stale = 0 if best_of_batch < goal else self.stale + 1
        if best_of_batch < float("inf"):
            self.best = min(self.best, best_of_batch) if self.measured else best_of_batch
            self.measured = True
        self.trials += trials
        self.history.append(self.best)

    @property
    def gradient(self) -> float:
        """Seconds of the model's time that the next batch may save, the more the better."""
        past = 0.0
        if len(self.history) > 1:
            window = min(WINDOW, len(self.history) - 1)
            past = (self.history[-1 - window] - self.history[-1]) / window
        optimism = self.best / max(1, len(self.history))
        return self.task.weight * (ALPHA * past + (1 - ALPHA) * optimism)


class Scheduler:
    """Hands out tasks until every one has ended."""

    def __init__(self, standings: list[Standing], budget: Budget, fixed: float) -> None:
        """fixed: seconds of the end-to-end time in tasks that are not tuned here."""
        self.standings = standings
        self.budget = budget
        self.fixed = fixed

    @property
    def end_to_end(self) -> float:
        """Estimated latency of the whole model, seconds."""
        return self.fixed + sum(s.task.weight * s.best for s in self.standings)

    def next(self) -> tuple[Standing, str] | None:
        """The task for the next batch and the reason; None when all have ended.

        First every task once, the heaviest first; from then on by gradient.
        """
        self._end()
        open_tasks = [s for s in self.standings if not s.ended]
        fresh = [s for s in open_tasks if not s.history]
        if fresh:
            chosen = max(fresh, key=lambda s: s.task.weight * s.best)
            return chosen, "first look"
        if not open_tasks:
            return None
        chosen = max(open_tasks, key=lambda s: s.gradient)
        share = chosen.task.weight * chosen.best / self.end_to_end
        return chosen, f"steepest: {share:.0%} of the time, {chosen.trials} trials so far"

    def trials_left(self) -> int:
        """Trials until every task has had its limit."""
        return sum(max(0, self.budget.per_task - s.trials) for s in self.standings if not s.ended)

    def _end(self) -> None:
        total = self.end_to_end
        for standing in self.standings:
            if standing.ended or not standing.history:
                continue
            if standing.trials >= self.budget.per_task:
                standing.ended = "limit"
            elif standing.stale >= PATIENCE:
                standing.ended = "no improvement"
            elif standing.task.weight * standing.best < self.budget.min_impact * total:
                standing.ended = "impact"
