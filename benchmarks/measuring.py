"""What measuring one candidate costs, and how true it is, beside stock MetaSchedule.

    python benchmarks/measuring.py [--tasks 10] [--programs 32] [--seed N] [--json FILE]

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

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import onnx

from ansor_deploy._tvm import meta_schedule as ms
from ansor_deploy._tvm import tvm_target
from ansor_deploy.measure.build import BuildJob
from ansor_deploy.measure.health import TEXT
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.prepare import prepare
from ansor_deploy.model.tasks import Task
from ansor_deploy.space.question import Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.sketch import default_schedule, derive
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.target import Target
from ansor_deploy.tune.scheduler import BATCH
from benchmarks import searching

NETWORK = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"
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


def main() -> None:
    """Measure each task's programs both ways; print as they come."""
    args = _options()
    target = searching.host(args.threads)
    os.environ["TVM_NUM_THREADS"] = str(target.cores)  # its workers would take half of them
    print(HEADER, flush=True)
    rows, tasks = [], _tasks(target, args.tasks)
    began = time.perf_counter()
    with Measurer(target) as measurer:
        measurer.builder.build([BuildJob(TEXT, "default")] * target.cores)
        starting = time.perf_counter() - began
        for task in tasks:
            programs = _programs(task, target, args.programs, args.seed)
            rows.append(_row(task, target, programs, measurer))
            print(rows[-1], flush=True)
    total = _total(rows, starting)
    print(json.dumps(total))
    if args.json:
        found = {**total, "tasks": [asdict(row) for row in rows]}
        args.json.write_text(json.dumps(found, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=10, help="default 10")
    parser.add_argument("--programs", type=int, default=32, help="a task; default 32")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    return parser.parse_args()


def _tasks(target: Target, count: int) -> list[Task]:
    tasks = prepare(NETWORK, target).tasks
    return sorted(tasks, key=lambda task: -task.weight * task.roofline(target))[:count]


def _programs(task: Task, target: Target, count: int, seed: int) -> list[str]:
    """Traces of different random programs of the task's sketches, as many as there are."""
    sketches = derive(task.mod, target, shipped_rules(target.kind)).sketches
    rng = random.Random(f"{seed} {task.key.workload}")
    found: dict[str, None] = {}
    for _ in range(4 * count):
        try:
            found[dump(rng.choice(sketches).program(Random(rng)).sch.trace)] = None
        except (RuntimeError, ValueError):  # decisions that do not fit
            continue
        if len(found) == count:
            break
    return list(found)


def _row(task: Task, target: Target, traces: Sequence[str], measurer: Measurer) -> Row:
    default = dump(default_schedule(task.mod, target).trace)
    ours_s, ours = _timed(lambda: _ours(task, traces, measurer))
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


def _ours(task: Task, traces: Sequence[str], measurer: Measurer) -> dict[str, float]:
    outcomes: list[Any] = []
    for start in range(0, len(traces), BATCH):
        best = min((one.latency for one in outcomes), default=float("inf"))
        outcomes += measurer.measure(task, traces[start : start + BATCH], best=best)
    return {one.trace: one.latency for one in outcomes}


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


def _timed(call: Callable[[], dict[str, float]]) -> tuple[float, dict[str, float]]:
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


if __name__ == "__main__":
    main()
