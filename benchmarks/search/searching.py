"""One timed search of a task: what the benchmarks of searches share."""

from __future__ import annotations

import platform
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from ansor_deploy import __version__
from ansor_deploy._tvm import VERSION
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.prepare import prepare
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.model.tasks import Task
from ansor_deploy.registry.record import Measurement, Provenance
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.trace import dump
from ansor_deploy.target import Target
from ansor_deploy.tune.ledger import now
from ansor_deploy.tune.scheduler import BATCH
from ansor_deploy.tune.search import Search
from benchmarks.networks import zoo
from benchmarks.search.operators_te import CASES
from benchmarks.search.replay import ReplayMeasurer

FAILURES = 5  # attempts for each program wanted: random decisions may not fit, or be known already

Opener = Callable[[Task, Target, Sequence[Measurement], int], Search]


@dataclass(frozen=True)
class Run:
    """A search of one task.

    outcomes: in the order of measuring. seconds: of the search; searching: without building and
    running.
    """

    outcomes: tuple[Outcome, ...]
    seconds: float
    searching: float

    def fastest(self, count: int) -> list[Outcome]:
        """The fastest few outcomes, the best first; fewer where others failed."""
        ranked = sorted(self.outcomes, key=lambda outcome: outcome.latency)
        return [outcome for outcome in ranked[:count] if not outcome.error]


def search(
    open_: Opener,
    task: Task,
    target: Target,
    measurer: Measurer | ReplayMeasurer,
    trials: int,
    seed: int,
    *,
    default_first: bool = True,
) -> Run:
    """Spend the trials on a task, as `ansor_deploy.tune.queue` does.

    default_first: the first trial is the default schedule, which the search then knows.
    """
    began, measuring = time.perf_counter(), 0.0
    outcomes: list[Outcome] = []
    if default_first:
        outcomes += measurer.measure(task, [default_trace(task, target)])
        measuring += time.perf_counter() - began
    searcher = open_(task, target, [measurement(task, outcome) for outcome in outcomes], seed)
    while len(outcomes) < trials:
        traces = searcher.propose(min(BATCH, trials - len(outcomes)))
        if not traces:
            break
        start = time.perf_counter()
        found = measurer.measure(task, traces, best=_best(outcomes))
        measuring += time.perf_counter() - start
        searcher.observe(found)
        outcomes += found
    seconds = time.perf_counter() - began
    return Run(tuple(outcomes), seconds, seconds - measuring)


def operator_task(case: str, target: Target) -> Task:
    """The task of one of `operators_te.CASES`."""
    return task_of(CASES[case].function(), case, target)


def network_tasks(name: str, target: Target, count: int | None = None) -> list[Task]:
    """The tasks with the largest share of a network's time by the roofline, the largest first.

    count: how many; all by default.
    """
    with tempfile.TemporaryDirectory() as folder:
        tasks = prepare(saved(name, folder), target).tasks
    return sorted(tasks, key=lambda task: -task.weight * task.roofline(target))[:count]


def saved(name: str, folder: Path | str) -> Path:
    """Write a network to a file in a folder; return its path."""
    path = Path(folder) / f"{Path(name).stem}.onnx"
    onnx.save(zoo.network(name), path)
    return path


def drawn(
    task: Task,
    target: Target,
    count: int,
    rng: random.Random,
    is_known: Callable[[str], bool] = lambda trace: False,
) -> dict[str, Any]:
    """Schedules of so many new random programs, by their traces; fewer if there are no more."""
    sketches = derive(task.mod, target, shipped_rules(target.kind)).sketches
    found: dict[str, Any] = {}
    for _ in range(count * FAILURES):
        if len(found) == count or not sketches:
            break
        try:
            sch = rng.choice(sketches).program(Random(rng)).sch
        except (RuntimeError, ValueError):  # TVM refuses these decisions
            continue
        if not is_known(trace := dump(sch.trace)):
            found[trace] = sch
    return found


def default_trace(task: Task, target: Target) -> str:
    """The trace of the default schedule."""
    return dump(default_schedule(task.mod, target).trace)


def measured(measurer: Measurer, task: Task, traces: Sequence[str]) -> list[Outcome]:
    """Outcomes of programs in batches, as a search asks for them."""
    outcomes: list[Outcome] = []
    for start in range(0, len(traces), BATCH):
        some = traces[start : start + BATCH]
        outcomes += measurer.measure(task, some, best=_best(outcomes))
    return outcomes


def _best(outcomes: Sequence[Outcome]) -> float:
    return min((outcome.latency for outcome in outcomes), default=float("inf"))


def measurement(task: Task, outcome: Outcome, features: bytes | None = None) -> Measurement:
    """An outcome as a measurement of a registry."""
    where = Provenance(__version__, VERSION, "ansor", platform.node(), 0, now())
    said = (outcome.trace, outcome.seconds, outcome.error, outcome.message)
    return Measurement(task.key, *said, where, features)
