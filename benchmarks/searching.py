"""One search of one task, timed: what the benchmarks of searches have in common."""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from ansor_deploy import __version__
from ansor_deploy._tvm import VERSION
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.measure.replay import ReplayMeasurer
from ansor_deploy.model.extract import task_of
from ansor_deploy.model.prepare import prepare
from ansor_deploy.model.tasks import Task
from ansor_deploy.project import shipped
from ansor_deploy.registry.record import Measurement, Provenance
from ansor_deploy.search import Search, open_search
from ansor_deploy.search.context import SearchContext
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.sketch import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.target import Target, load_target
from ansor_deploy.tune.scheduler import BATCH
from benchmarks import light, zoo
from benchmarks.operators_te import CASES
from benchmarks.peak import Peak

Opener = Callable[[Task, Target, Sequence[Measurement], int], Search]


@dataclass(frozen=True)
class Run:
    """A search of one task.

    outcomes: in the order measured. clock: seconds since the start when each was known.
    searching: seconds spent on anything but building and running.
    """

    outcomes: tuple[Outcome, ...]
    clock: tuple[float, ...]
    searching: float

    def fastest(self, count: int) -> list[Outcome]:
        """The fastest few, the best first; fewer where the others failed."""
        ranked = sorted(self.outcomes, key=lambda outcome: outcome.latency)
        return [outcome for outcome in ranked[:count] if not outcome.error]

    @property
    def records(self) -> list[tuple[int, float, str]]:
        """Whatever was the best when it was measured: trials and seconds by then, and its trace."""
        found, best = [], float("inf")
        for number, outcome in enumerate(self.outcomes):
            if outcome.latency < best:
                best = outcome.latency
                found.append((number + 1, self.clock[number], outcome.trace))
        return found


def opener(name: str) -> Opener:
    """A function that opens the search of that name."""

    def open_(task: Task, target: Target, known: Sequence[Measurement], seed: int) -> Search:
        return open_search(
            name, task, known, SearchContext(target, shipped_rules(target.kind), seed)
        )

    return open_


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
    clock: list[float] = []
    if default_first:
        start = time.perf_counter()
        outcomes += measurer.measure(task, [dump(default_schedule(task.mod, target).trace)])
        measuring += time.perf_counter() - start
        clock.append(time.perf_counter() - began)
    searcher = open_(task, target, [_measurement(task, outcome) for outcome in outcomes], seed)
    while len(outcomes) < trials:
        traces = searcher.propose(min(BATCH, trials - len(outcomes)))
        if not traces:
            break
        start = time.perf_counter()
        found = measurer.measure(task, traces, best=_best(outcomes))
        measuring += time.perf_counter() - start
        searcher.observe(found)
        outcomes += found
        clock += [time.perf_counter() - began] * len(found)
    searching = time.perf_counter() - began - measuring
    return Run(tuple(outcomes), tuple(clock), searching)


def host(threads: int) -> Target:
    """This machine, with so many of its cores."""
    target = load_target("host", [shipped("targets")])
    return replace(target, cores=min(threads, target.cores))


def operator_task(case: str, target: Target) -> Task:
    """The task of one of `operators_te.CASES`."""
    return task_of(CASES[case].function(), case, target)


def network_tasks(name: str, target: Target, count: int | None = None) -> list[Task]:
    """The tasks in which a network must spend most of its time, heaviest first; by default all."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{Path(name).stem}.onnx"
        onnx.save(network(name), path)
        tasks = prepare(path, target).tasks
    return sorted(tasks, key=lambda task: -task.weight * task.roofline(target))[:count]


def network(name: str) -> onnx.ModelProto:
    """One of `zoo.NETWORKS`, a light model of the package onnx, or an ONNX file."""
    if name in zoo.NETWORKS:
        return zoo.NETWORKS[name]()
    return light.load(name) if name in light.NAMES else onnx.load(name)


def measured_peak() -> Peak:
    """This machine's limits, measured in a process of its own: its threads would linger here."""
    import json

    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "peak.json"
        command = [sys.executable, "-m", "benchmarks.peak", "--json", str(found)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return Peak(**json.loads(found.read_text()))


def progress(line: str) -> None:
    """Print a line of progress on stderr."""
    print(line, file=sys.stderr, flush=True)


def one_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Type of an option that takes names with commas between them."""

    def names(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := set(chosen) - set(known):
            raise argparse.ArgumentTypeError(f"no {', '.join(sorted(unknown))}")
        return chosen

    return names


def _best(outcomes: Sequence[Outcome]) -> float:
    return min((outcome.latency for outcome in outcomes), default=float("inf"))


def _measurement(task: Task, outcome: Outcome) -> Measurement:
    where = Provenance(__version__, VERSION, "default", platform.node(), 0, "")
    return Measurement(
        task.key, outcome.trace, outcome.seconds, outcome.error, outcome.message, where
    )
