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
from dataclasses import dataclass
from typing import Protocol


class Objective(Protocol):
    """A function of the models' latencies, in seconds, in the order of the plan's models."""

    @property
    def name(self) -> str:
        """What `--objective` calls it."""

    @property
    def patience(self) -> int:
        """Batches without improvement after which a task is left."""

    def value(self, latencies: Sequence[float]) -> float:
        """What is to become small."""

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """Its derivative in each model's latency; zero where a gain would count for nothing."""


PATIENCE = 2
LITTLE_PATIENCE = 1


@dataclass(frozen=True)
class Latency:
    """f1: the sum of the latencies."""

    name: str = "latency"
    patience: int = PATIENCE

    def value(self, latencies: Sequence[float]) -> float:
        """Seconds, all models together."""
        return math.fsum(latencies)

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """A second is a second, whichever model it is of."""
        return (1.0,) * len(latencies)


@dataclass(frozen=True)
class Goal:
    """f2: no gain below a model's goal. goals: seconds a model; 0 where it has none."""

    goals: tuple[float, ...]
    name: str = "goal"
    patience: int = PATIENCE

    def value(self, latencies: Sequence[float]) -> float:
        """Seconds, each model's at least its goal."""
        return math.fsum(map(max, latencies, self.goals))

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """One until the goal is reached, then zero."""
        return tuple(float(d > g) for d, g in zip(latencies, self.goals, strict=True))


@dataclass(frozen=True)
class Speedup:
    """f3: the negative geometric mean of the speed-ups.

    references: seconds a model that speed-ups are relative to; one second each if empty. They
    scale the value and the slopes alike, so that they never decide which task is next.
    """

    references: tuple[float, ...] = ()
    name: str = "speedup"
    patience: int = PATIENCE

    def value(self, latencies: Sequence[float]) -> float:
        """Minus how many times faster than the references."""
        references = self.references or (1.0,) * len(latencies)
        logs = [math.log(b / d) for b, d in zip(references, latencies, strict=True)]
        return -math.exp(math.fsum(logs) / len(logs))

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """-f / (m D_j): halving a quick model is worth as much as halving a slow one."""
        mean = -self.value(latencies) / len(latencies)
        return tuple(mean / latency for latency in latencies)


@dataclass(frozen=True)
class EarlyStop(Latency):
    """f4: as f1, but a task is left after the first batch that brings nothing."""

    name: str = "early-stop"
    patience: int = LITTLE_PATIENCE


OBJECTIVES = ("latency", "goal", "speedup", "early-stop")


def make_objective(name: str, goals: Sequence[float] = ()) -> Objective:
    """The objective called so, one of OBJECTIVES. goals: seconds a model, for "goal"."""
    made: dict[str, Objective] = {
        "latency": Latency(),
        "speedup": Speedup(),
        "early-stop": EarlyStop(),
    }
    return Goal(tuple(goals)) if name == "goal" else made[name]
