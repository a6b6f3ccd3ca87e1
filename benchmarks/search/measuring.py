"""What measuring one candidate costs, and how true it is, beside stock MetaSchedule.

Random programs of our sketches, of the heaviest tasks of light_resnet50 (in the package onnx),
are built and measured by both in one run. Ours, in batches as while tuning: outputs checked
twice, 3 to 10 repeats of 5 ms each, one repeat of what is far from the best. Theirs, all at
once: LocalBuilder and LocalRunner as MetaSchedule itself sets them up, nothing checked, one
repeat of at least 100 ms. Both have the target's threads. Starting up is counted: ours once, theirs
for every task, as in their tuning.

Rank: Spearman's correlation of each one's times with those taken in turns, all programs of a
task timed in turns, nine times; the mean over the tasks.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import click
import numpy as np

from ansor_deploy._tvm import meta_schedule as ms
from ansor_deploy._tvm import tvm_target
from ansor_deploy.measure.build import BuildJob
from ansor_deploy.measure.health import TEXT
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.tasks import Task
from ansor_deploy.space.trace import replay
from ansor_deploy.target import Target
from benchmarks.networks import light
from benchmarks.options import json_option, number, save
from benchmarks.search import searching

NETWORK = light.FOLDER / "light_resnet50.onnx"
FEWEST = 3  # programs measured by both: a rank of fewer says nothing


@dataclass(frozen=True)
class Row:
    """One task. Seconds a trial, all in all; rank: agreement with times in turns, else NaN."""

    task: str
    programs: int
    ours_s: float
    metaschedule_s: float
    rank: float
    metaschedule_rank: float

    def __str__(self) -> str:
        ratio = self.ours_s / self.metaschedule_s
        return (
            f"{self.task[:40]:40}{self.programs:9d}{self.ours_s:9.3f}{self.metaschedule_s:14.3f}"
            f"{ratio:8.3f}{self.rank:7.2f}{self.metaschedule_rank:14.2f}"
        )


HEADER = (
    f"{'task':40}{'programs':>9}{'ours s':>9}{'metaschedule s':>14}"
    f"{'ratio':>8}{'rank':>7}{'its rank':>14}"
)


@click.command
@number("--tasks", 10)
@number("--programs", 32, "Of a task.")
@number("--threads", 2)
@number("--seed", 0)
@json_option
def command(tasks: int, programs: int, threads: int, seed: int, file: Path | None) -> None:
    """Measure each task's programs both ways; print as they come."""
    target = searching.host(threads)
    os.environ["TVM_NUM_THREADS"] = str(target.cores)  # its workers would take half of them
    print(HEADER, flush=True)
    rows, chosen = [], searching.network_tasks(str(NETWORK), target, tasks)
    began = time.perf_counter()
    with Measurer(target) as measurer:
        measurer.builder.build([BuildJob(TEXT, "default")] * target.cores)
        starting = time.perf_counter() - began
        for task in chosen:
            rng = random.Random(f"{seed} {task.key.workload}")
            traces = list(searching.drawn(task, target, programs, rng))
            rows.append(_row(task, target, traces, measurer))
            print(rows[-1], flush=True)
    total = _total(rows, starting)
    print(json.dumps(total))
    save({**total, "tasks": [asdict(row) for row in rows]}, file)


def _row(task: Task, target: Target, traces: Sequence[str], measurer: Measurer) -> Row:
    default = searching.default_trace(task, target)
    ours_s, outcomes = _timed(lambda: searching.measured(measurer, task, traces))
    ours = {one.trace: one.latency for one in outcomes}
    theirs_s, theirs = _timed(lambda: _theirs(task, target, traces))
    fit = [t for t in traces if np.isfinite(ours[t])]
    truth = {one.trace: one.latency for one in measurer.head_to_head(task, fit, default)}
    return Row(
        task=task.name,
        programs=len(traces),
        ours_s=ours_s / len(traces),
        metaschedule_s=theirs_s / len(traces),
        rank=_rank(ours, truth),
        metaschedule_rank=_rank(theirs, truth),
    )


def _theirs(task: Task, target: Target, traces: Sequence[str]) -> dict[str, float]:
    """As MetaSchedule's tuning does it, with the schedules at hand."""
    schedules = [replay(task.mod, trace) for trace in traces]
    inputs = [ms.builder.BuilderInput(sch.mod, tvm_target(target)) for sch in schedules]
    built = ms.builder.LocalBuilder().build(inputs)
    runs = [
        (trace, ms.runner.RunnerInput(result.artifact_path, "cpu", _arguments(sch)))
        for trace, sch, result in zip(traces, schedules, built, strict=True)
        if result.error_msg is None
    ]
    futures = ms.runner.LocalRunner().run([one for _, one in runs])
    found = dict.fromkeys(traces, float("inf"))
    for (trace, _), future in zip(runs, futures, strict=True):
        if seconds := future.result().run_secs:
            found[trace] = mean(float(second) for second in seconds)
    if not any(np.isfinite(one) for one in found.values()):
        raise RuntimeError(f"{task.name}: MetaSchedule measured nothing")
    return found


def _arguments(sch: Any) -> Any:
    return ms.arg_info.ArgInfo.from_entry_func(sch.mod, remove_preproc=True)


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


def _rank(times: dict[str, float], truth: dict[str, float]) -> float:
    """Spearman's correlation over what both have timed."""
    both = [t for t in truth if np.isfinite(truth[t]) and np.isfinite(times[t])]
    if len(both) < FEWEST:
        return float("nan")
    ranks = [np.argsort(np.argsort([of[t] for t in both])) for of in (times, truth)]
    return float(np.corrcoef(*ranks)[0, 1])


def _total(rows: Sequence[Row], starting: float) -> dict[str, float]:
    """Means over the tasks. starting: seconds that our workers took to start, once for all."""
    ours = mean(row.ours_s for row in rows) + starting / sum(row.programs for row in rows)
    theirs = mean(row.metaschedule_s for row in rows)
    return {
        "ours_s": ours,
        "metaschedule_s": theirs,
        "ratio": ours / theirs,
        "rank": float(np.nanmean([row.rank for row in rows])),
        "metaschedule_rank": float(np.nanmean([row.metaschedule_rank for row in rows])),
    }
