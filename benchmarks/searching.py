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
from typing import Any

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
from benchmarks import zoo
from benchmarks.operators_te import OPERATORS
from benchmarks.peak import Peak

Opener = Callable[[Task, Target, Sequence[Measurement], int], Search]


@dataclass(frozen=True)
class Run:
    """A search of one task.

    outcomes: in the order measured. first: how many came before anything was learnt.
    seconds: wall clock. searching: seconds of it spent on anything but building and running.
    """

    outcomes: tuple[Outcome, ...]
    first: int
    seconds: float
    searching: float

    @property
    def best(self) -> Outcome:
        """The fastest."""
        return min(self.outcomes, key=lambda outcome: outcome.latency)

    @property
    def per_trial(self) -> float:
        """Seconds a trial, all in all."""
        return self.seconds / len(self.outcomes)


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
    if default_first:
        start = time.perf_counter()
        outcomes += measurer.measure(task, [dump(default_schedule(task.mod, target).trace)])
        measuring += time.perf_counter() - start
    searcher = open_(task, target, [_measurement(task, outcome) for outcome in outcomes], seed)
    first = 0
    while len(outcomes) < trials:
        traces = searcher.propose(min(BATCH, trials - len(outcomes)))
        if not traces:
            break
        start = time.perf_counter()
        found = measurer.measure(task, traces, best=_best(outcomes))
        measuring += time.perf_counter() - start
        searcher.observe(found)
        outcomes += found
        first = first or len(outcomes)
    seconds = time.perf_counter() - began
    return Run(tuple(outcomes), first, seconds, seconds - measuring)


def host(threads: int) -> Target:
    """This machine, with so many of its cores."""
    target = load_target("host", [shipped("targets")])
    return replace(target, cores=min(threads, target.cores))


def operator_task(name: str, target: Target) -> Task:
    """The task of one of `operators_te.OPERATORS`."""
    return task_of(OPERATORS[name].function(), name, target)


def network_tasks(name: str, target: Target, count: int) -> list[Task]:
    """The tasks in which one of `zoo.NETWORKS` must spend most of its time, heaviest first."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        onnx.save(zoo.NETWORKS[name](), path)
        tasks = prepare(path, target).tasks
    return sorted(tasks, key=lambda task: -task.weight * task.roofline(target))[:count]


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


def options(doc: str | None, known: Sequence[str], chosen: Sequence[str], trials: int) -> Any:
    """A parser with the options that all of these benchmarks have."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--only", type=one_of(known), default=list(chosen), help=",".join(known))
    parser.add_argument("--trials", type=int, default=trials, help=f"a task; default {trials}")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    return parser


def _best(outcomes: Sequence[Outcome]) -> float:
    return min((outcome.latency for outcome in outcomes), default=float("inf"))


def _measurement(task: Task, outcome: Outcome) -> Measurement:
    where = Provenance(__version__, VERSION, "default", platform.node(), 0, "")
    return Measurement(
        task.key, outcome.trace, outcome.seconds, outcome.error, outcome.message, where
    )
