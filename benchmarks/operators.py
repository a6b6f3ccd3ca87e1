"""Our search beside TVM's MetaSchedule on the operators of the Ansor paper.

    python benchmarks/operators.py [--trials 64] [--only C2D,...] [--seed N] [--json FILE]

Both searches get the same trials on the same task, built and timed by the same code, on two
threads. At the end the two winners are measured again, in turns, and those are the times told.
The limit is what this machine's arithmetic or its memory allows, whichever is longer; tensors
that stay in a cache may be read faster than that. The median is of our first candidates, before
anything was learnt. The JSON is written after each operator.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import searching
from operators_te import OPERATORS
from peak import Peak

from ansor_deploy.measure.local import LocalMeasurer
from ansor_deploy.model.tasks import Task
from ansor_deploy.target import Target

REPEATS = 5  # of the winners, in turns
HEADER = (
    f"{'operator':12}{'ours ms':>10}{'theirs ms':>10}{'speed-up':>9}{'limit ms':>10}"
    f"{'of limit':>9}{'median ms':>10}{'s/trial':>8}{'theirs':>8}"
)


@dataclass(frozen=True)
class Case:
    """One operator. Times in milliseconds, of one run; the seconds are wall clock."""

    name: str
    ours_ms: float
    metaschedule_ms: float
    limit_ms: float
    median_ms: float
    ours_seconds_per_trial: float
    metaschedule_seconds_per_trial: float

    @property
    def speedup(self) -> float:
        """How many times faster than MetaSchedule's."""
        return self.metaschedule_ms / self.ours_ms

    def __str__(self) -> str:
        return (
            f"{self.name:12}{self.ours_ms:10.4f}{self.metaschedule_ms:10.4f}{self.speedup:9.2f}"
            f"{self.limit_ms:10.4f}{self.limit_ms / self.ours_ms:9.0%}{self.median_ms:10.4f}"
            f"{self.ours_seconds_per_trial:8.2f}{self.metaschedule_seconds_per_trial:8.2f}"
        )


def main() -> None:
    """Search every chosen operator twice; print as they come."""
    names = list(OPERATORS)
    args = searching.options(__doc__, names, names, trials=64).parse_args()
    limits, target = searching.measured_peak(), searching.host(args.threads)
    print(f"{target.cores} threads, {limits.gflops:.0f} GFLOP/s, {limits.gbytes:.0f} GB/s")
    print(HEADER, flush=True)
    cases: list[Case] = []
    with LocalMeasurer(target) as measurer:
        _warm_up(target)
        for name in args.only:
            cases.append(_case(name, target, measurer, limits, args.trials, args.seed))
            print(cases[-1], flush=True)
            write(args.json, cases, limits, args.trials)
    found = summary(cases)
    print(f"speed-up: geometric mean {found['geomean']:.2f}, worst {found['worst']:.2f}")


def summary(cases: Sequence[Case]) -> dict[str, Any]:
    """Cases, and the geometric mean and the least of their speed-ups."""
    speedups = [case.speedup for case in cases]
    return {
        "cases": [asdict(case) for case in cases],
        "geomean": statistics.geometric_mean(speedups),
        "worst": min(speedups),
    }


def write(path: Path | None, cases: Sequence[Case], limits: Peak, trials: int) -> None:
    """What there is by now."""
    if path is not None:
        found = {**summary(cases), "trials": trials, "peak": asdict(limits)}
        path.write_text(json.dumps(found, indent=2) + "\n")


def limit(name: str, task: Task, limits: Peak) -> float:
    """Seconds that the operator takes at this machine's peak, or at its memory's bandwidth."""
    flops = OPERATORS[name].flops or task.flops
    return max(flops / limits.gflops, task.workload.bytes / limits.gbytes) / 1e9


def _case(
    name: str, target: Target, measurer: LocalMeasurer, limits: Peak, trials: int, seed: int
) -> Case:
    task = searching.operator_task(name, target)
    runs = {}
    for engine in ("ansor", "metaschedule"):
        runs[engine] = searching.search(
            searching.opener(engine),
            task,
            target,
            measurer,
            trials,
            seed,
            default_first=engine == "ansor",
        )
        best = runs[engine].best.latency * 1e3
        tried = len(runs[engine].outcomes)
        searching.tell(f"{name}: {engine} {best:.4f} ms, {tried} trials")
    ours, theirs = runs["ansor"], runs["metaschedule"]
    ours_s, theirs_s = interleaved(task, ours.best.trace, theirs.best.trace, measurer)
    # The very first is the default schedule, no random candidate.
    first = [o.latency for o in ours.outcomes[1 : ours.first] if not o.error]
    return Case(
        name=name,
        ours_ms=ours_s * 1e3,
        metaschedule_ms=theirs_s * 1e3,
        limit_ms=limit(name, task, limits) * 1e3,
        median_ms=statistics.median(first) * 1e3 if first else float("inf"),
        ours_seconds_per_trial=ours.per_trial,
        metaschedule_seconds_per_trial=theirs.per_trial,
    )


def interleaved(task: Task, ours: str, theirs: str, measurer: LocalMeasurer) -> tuple[float, float]:
    """Median seconds of two schedules, measured in turns."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    pair = [("ours", ours), ("theirs", theirs)]
    turns = [turn for k in range(REPEATS) for turn in (pair if k % 2 else pair[::-1])]
    outcomes = measurer.measure(task, [trace for _, trace in turns])
    for (who, _), outcome in zip(turns, outcomes, strict=True):
        times[who].append(outcome.latency)
    return statistics.median(times["ours"]), statistics.median(times["theirs"])


def _warm_up(target: Target) -> None:
    """What either search loads once and for all is not part of its first operator's time."""
    task = searching.operator_task("DEP", target)
    for engine in ("ansor", "metaschedule"):
        searching.opener(engine)(task, target, [], 0)


if __name__ == "__main__":
    main()
