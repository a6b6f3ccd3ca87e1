"""How a model became faster during tuning, from the measurements in the registry."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, pairwise

from ...registry.record import Measurement, TaskKey
from ...registry.store import Registry

PAUSE = 300.0  # seconds without a measurement that separate two tuning runs

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Weighed:
    """A task of a model, from a manifest or the registry.

    latency_ms: None where it is not known.
    """

    key: str
    title: str
    weight: int
    latency_ms: float | None


@dataclass(frozen=True)
class Curve:
    """The best latency of a task or a model, over trials.

    points: (trials, milliseconds), one for each time that it fell, and one for the last trial.
    """

    key: str
    title: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Tuning:
    """A model's tuning.

    model: its estimated latency over the trials of all tasks. seconds: the tuning time at each of
    these trials, without the pauses between runs. tasks: the curves of those that were tuned, in
    the order of their share of the time, the largest first.
    """

    model: Curve
    seconds: tuple[float, ...]
    tasks: tuple[Curve, ...]

    @property
    def over_time(self) -> Points:
        """The model's curve: (seconds, milliseconds)."""
        return [(self.seconds[int(trial) - 1], ms) for trial, ms in self.model.points]


def tuning(registry: Registry, model: str, target: str, tasks: Sequence[Weighed]) -> Tuning | None:
    """How a model's tasks were tuned on a target; None where nothing was measured.

    model: its name. target: its fingerprint.
    """
    found = {
        task.key: list(registry.measurements(target, TaskKey(task.key, target))) for task in tasks
    }
    trials = sorted((one for some in found.values() for one in some), key=_when)
    if not trials:
        return None
    shown = [task for task in tasks if len(found[task.key]) > 1]
    shown.sort(key=lambda task: -task.weight * (task.latency_ms or 0.0))
    curves = tuple(_of_task(task, found[task.key]) for task in shown)
    whole = Curve("", model, _of_model(tasks, trials))
    return Tuning(whole, _seconds(trials), curves)


def falling(latencies: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """The points of a curve. latencies: the seconds of each trial; infinity where it failed."""
    best, points = math.inf, []
    for number, seconds in enumerate(latencies, start=1):
        if seconds < best:
            best = seconds
            points.append((float(number), best * 1e3))
    return _to_the_end(points, len(latencies))


def _of_task(task: Weighed, trials: Sequence[Measurement]) -> Curve:
    return Curve(task.key, task.title, falling([one.latency for one in trials]))


def _of_model(
    tasks: Sequence[Weighed], trials: Sequence[Measurement]
) -> tuple[tuple[float, float], ...]:
    """The points from where each measured task has a success.

    Tasks without measurements count with the latency in the manifest.
    """
    weights = {task.key: float(task.weight) for task in tasks}
    measured = {one.key.workload for one in trials}
    rest = sum(task.weight * (task.latency_ms or 0.0) for task in tasks if task.key not in measured)
    best: dict[str, float] = dict.fromkeys(measured, math.inf)
    points: list[tuple[float, float]] = []
    for number, one in enumerate(trials, start=1):
        if one.latency >= best[one.key.workload]:
            continue
        best[one.key.workload] = one.latency
        total = rest + sum(weights[key] * seconds * 1e3 for key, seconds in best.items())
        if math.isfinite(total):
            points.append((float(number), total))
    return _to_the_end(points, len(trials))


def _to_the_end(points: list[tuple[float, float]], last: int) -> tuple[tuple[float, float], ...]:
    return (*points, (float(last), points[-1][1])) if points else ()


def _seconds(trials: Iterable[Measurement]) -> tuple[float, ...]:
    steps = (after - before for before, after in pairwise(map(_when, trials)))
    return tuple(accumulate((step if step < PAUSE else 0.0 for step in steps), initial=0.0))


def _when(one: Measurement) -> float:
    """The time of a measurement, in seconds since 1970."""
    return datetime.fromisoformat(one.provenance.created.replace("Z", "+00:00")).timestamp()
