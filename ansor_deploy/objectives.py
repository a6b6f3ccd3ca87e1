"""Objectives: what a tuning run of one or several models makes small (Ansor, table 2).

With D_j the latency of model j, in seconds (the sum over its tasks of weight x best latency),

    f1 "latency"      sum D_j
    f2 "goal"         sum max(D_j, L_j)                with a goal L_j, in seconds, a model
    f3 "speedup"      -(product B_j / D_j) ^ (1 / m)   with a reference B_j, over m models
    f4 "early-stop"   sum of weight x max(g_i, ES_i)   over the tasks: f1, but ES_i, once task i
                      stops improving, is the latency that it has reached, and no gain counts

The task scheduler follows their derivatives in each task's latency g_i. By the chain rule that is
the sum over models of weight x df/dD_j, which `slopes` gives in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

PATIENCE = 2
LITTLE_PATIENCE = 1


@dataclass(frozen=True)
class Objective:
    """f1: the sum of the latencies. Others say what differs.

    name: for `--objective`. patience: batches without improvement after which a task is left.
    """

    name: str = "latency"
    patience: int = PATIENCE

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """The derivative in each model's latency, zero where a gain would count for nothing.

        latencies: of the models, in seconds, in the order of the plan.
        """
        return (1.0,) * len(latencies)

    def of_model(self, number: int) -> Objective:
        """The same for one of the models alone."""
        return self


@dataclass(frozen=True)
class Goal(Objective):
    """f2: no gain below a model's goal. goals: seconds a model; 0 where it has none."""

    name: str = "goal"
    goals: tuple[float, ...] = ()

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """One until the goal is reached, then zero."""
        return tuple(float(d > g) for d, g in zip(latencies, self.goals, strict=True))

    def of_model(self, number: int) -> Objective:
        """Its goal."""
        return replace(self, goals=(self.goals[number],))


@dataclass(frozen=True)
class Speedup(Objective):
    """f3: the negative geometric mean of the speed-ups, relative to one second a model.

    Other references would scale all slopes alike, and never decide which task is next.
    """

    name: str = "speedup"

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """-f / (m D_j): halving a quick model is worth as much as halving a slow one."""
        mean = math.prod(latencies) ** (-1 / len(latencies)) / len(latencies)
        return tuple(mean / latency for latency in latencies)


def make_objective(name: str, goals: Sequence[float] = ()) -> Objective:
    """The objective called so, one of OBJECTIVES. goals: seconds a model, for "goal"."""
    return Goal(goals=tuple(goals)) if name == "goal" else _BY_NAME[name]


_BY_NAME = {
    "latency": Objective(),
    "goal": Goal(),
    "speedup": Speedup(),
    "early-stop": Objective("early-stop", LITTLE_PATIENCE),
}
OBJECTIVES = tuple(_BY_NAME)
