"""The task scheduler: which task gets the next batch of trials, and when a task is finished.

It does Ansor's gradient descent over tasks (Ansor, section 6.2 and appendix A). Each batch goes to
the task that is expected to reduce the objective most. The estimate uses the task's own past, its
present latency and the speed of tasks like it. Since it may be wrong, some batches go to a random
task.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..model.tasks import Task
from ..request import PATIENCE, Budget, Objective
from ..system.words import count
from .result import Round

ALPHA = 0.2  # weight of past gains, against the optimistic guess (Ansor's default)
BETA = 2.0  # a task is expected to come within this factor of the fastest like it (Ansor's default)
WINDOW = 3  # batches over which the past gain is averaged
EPSILON = 0.05  # share of the batches that go to a task at random
IMPROVEMENT = 0.01  # share by which a batch must improve on the best to count
FIRST_LOOK = "first look"  # the reason of a task's first batch
NEAR = 0.95  # a task is done when its lower bound is this share of its best latency
BATCH = 16  # trials of a batch, the unit in which the time spent on a task is counted


@dataclass
class TaskProgress:
    """The progress of a task in a run.

    best: its best latency, seconds. trials: including those of earlier runs. measured: whether
    `best` was measured; else it is an estimate. stale: batches since the last that improved it.
    ended: why it gets no more trials; "" while it may. busy: whether a batch of it is being
    measured. asked: whether `--retune` names it, however small its share. limit: about how many
    trials it can use, by the number of its programs. least: a lower bound of its programs' seconds;
    0 where none is known. history: the best latency after each batch, seconds. earlier: batches of
    earlier runs.
    """

    task: Task
    best: float
    trials: int = 0
    measured: bool = False
    stale: int = 0
    ended: str = ""
    busy: bool = False
    asked: bool = False
    limit: float = math.inf
    least: float = 0.0
    history: list[float] = field(default_factory=list)
    earlier: int = field(init=False)

    def __post_init__(self) -> None:
        self.earlier = self.trials // BATCH

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
    def flops_per_second(self) -> float:
        """The best speed so far; 0 for a task without arithmetic or without a measurement."""
        return self.task.flops / self.best if self.measured else 0.0

    def gain(self, fastest: float = 0.0) -> float:
        """Seconds of one run of the task that its next batch is expected to save.

        fastest: FLOP/s of the fastest task like it. With g the best latency after t batches and
        C the task's FLOPs, the guess is alpha x the mean gain of the last WINDOW batches plus
        (1 - alpha) x (g - min(g - g/t, beta C / fastest)). The optimistic part assumes that the
        latency keeps falling at its mean rate so far, or comes within beta of the speed of tasks
        like it. No batch saves more than the time above the task's lower bound.
        """
        past = 0.0
        if len(self.history) > 1:
            window = min(WINDOW, len(self.history) - 1)
            past = (self.history[-1 - window] - self.history[-1]) / window
        expected = self.best - self.best / max(1, self.earlier + len(self.history))
        if fastest and self.task.flops:
            expected = min(expected, BETA * self.task.flops / fastest)
        room = max(0.0, self.best - self.least)
        return min(room, ALPHA * past + (1 - ALPHA) * (self.best - expected))

    @property
    def at_limit(self) -> bool:
        """Whether its measured latency is close to its lower bound."""
        return self.measured and self.least >= NEAR * self.best


@dataclass(frozen=True)
class Progress:
    """The progress of tuning after a batch of measurements, which `round` describes.

    trials: trials of the run so far. failed: how many of these failed. total_trials: trials that
    are expected in all. elapsed: seconds so far. left: estimated seconds until the budget or the
    work ends.
    """

    round: Round
    trials: int
    total_trials: int
    failed: int
    elapsed: float
    left: float


class Scheduler:
    """Chooses the tasks of batches until every task has ended."""

    def __init__(
        self,
        states: Sequence[TaskProgress],
        budget: Budget,
        fixed: Sequence[float],
        objective: Objective | None = None,
        seed: int = 0,
    ) -> None:
        """fixed: for each model, its seconds in tasks that are not tuned here."""
        self.states = list(states)
        self.budget = budget
        self.fixed = tuple(fixed)
        self.objective = objective or Objective()
        self._random = random.Random(seed)  # noqa: S311 - no secret

    @property
    def latencies(self) -> tuple[float, ...]:
        """Estimated latency of each model, seconds."""
        return tuple(
            fixed + sum(s.task.per_model[model] * s.best for s in self.states)
            for model, fixed in enumerate(self.fixed)
        )

    @property
    def end_to_end(self) -> float:
        """Estimated latency of all models together, seconds."""
        return sum(self.latencies)

    def slope(self, state: TaskProgress) -> float:
        """The derivative of the objective with respect to a task's latency."""
        slopes = self.objective.slopes(self.latencies)
        return sum(w * slope for w, slope in zip(state.task.per_model, slopes, strict=True))

    def gradient(self, state: TaskProgress) -> float:
        """By how much the next batch of a task is expected to reduce the objective."""
        return self.slope(state) * state.gain(self._fastest_like(state))

    def next(self) -> tuple[TaskProgress, str] | None:
        """The task for the next batch, and the reason; None when all have ended or are busy.

        First every task gets one batch, the heaviest task first; then the gradient decides.
        """
        self.end_finished()
        free = [s for s in self.states if not s.ended and not s.busy]
        fresh = [s for s in free if not s.history]
        if fresh:
            return max(fresh, key=lambda s: s.task.weight * s.best), FIRST_LOOK
        if not free:
            return None
        if len(free) > 1 and self._random.random() < EPSILON:
            return self._random.choice(free), "at random: the gradient may be wrong"
        return self._steepest(free)

    def trials_left(self) -> int:
        """Trials until every task has reached its limit."""
        left = (min(self.budget.per_task, s.limit) - s.trials for s in self.states if not s.ended)
        return int(sum(max(0, trials) for trials in left))

    def looks_left(self) -> int:
        """How many tasks are waiting for their first look."""
        return sum(not s.ended and not s.history for s in self.states)

    def _steepest(self, free: Sequence[TaskProgress]) -> tuple[TaskProgress, str]:
        chosen = max(free, key=self.gradient)
        share = chosen.task.weight * chosen.best / self.end_to_end
        tried = count(chosen.trials, "trial")
        why = f"steepest: {share:.0%} of the time, {tried} so far"
        if chosen.gain(self._fastest_like(chosen)) > chosen.gain():
            why += ", and a task like it runs faster"
        return chosen, why

    def _fastest_like(self, state: TaskProgress) -> float:
        """FLOP/s of the fastest other task of the family: same program, other shapes."""
        family = state.task.workload.family
        like = [s for s in self.states if s.task.workload.family == family and s is not state]
        return max((s.flops_per_second for s in like), default=0.0)

    def end_finished(self) -> None:
        """Mark the tasks that are finished, each with the reason."""
        least = self.budget.min_impact * self.end_to_end
        known = all(state.measured or state.history for state in self.states)
        for state in self.states:
            if state.ended or state.busy:
                continue
            # Before everything was measured, a goal may seem reached that is not.
            if known and self.slope(state) == 0:
                state.ended = "goal"
            elif not state.history:
                continue
            elif state.at_limit and not state.asked:
                state.ended = "nothing to find"
            elif state.trials >= self.budget.per_task:
                state.ended = "limit"
            elif state.stale >= self.objective.patience:
                state.ended = self._stale_reason()
            elif not state.asked and state.task.weight * state.best < least:
                state.ended = "impact"

    def _stale_reason(self) -> str:
        """The reason for a stale task: an objective with more patience may still find something."""
        return "no improvement" if self.objective.patience >= PATIENCE else "early stop"
