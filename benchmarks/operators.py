"""Our search beside TVM's MetaSchedule on the operators of the Ansor paper.

    python benchmarks/operators.py [--trials 64] [--only C2D,...] [--seed N] [--json FILE]

Both searches get the same trials on the same task, built and timed by the same code, on two
threads. At the end the best few of each are measured again, in turns, and the best medians are the
times reported: of many close candidates, the fastest single measurement is often a lucky one.
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

from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.tasks import Task
from ansor_deploy.target import Target
from benchmarks import searching
from benchmarks.operators_te import OPERATORS
from benchmarks.peak import Peak

REPEATS = 5  # of the finalists, in turns
FINALISTS = 4  # of each search
HEADER = (
    f"{'operator':12}{'ours ms':>10}{'theirs ms':>10}{'ratio':>9}{'limit ms':>10}"
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
    def ratio(self) -> float:
        """Our time in MetaSchedule's: below 1 is faster."""
        return self.ours_ms / self.metaschedule_ms

    def __str__(self) -> str:
        return (
            f"{self.name:12}{self.ours_ms:10.4f}{self.metaschedule_ms:10.4f}{self.ratio:9.2f}"
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
    with Measurer(target) as measurer:
        _warm_up(target)
        for name in args.only:
            cases.append(_case(name, target, measurer, limits, args.trials, args.seed))
            print(cases[-1], flush=True)
            write(args.json, cases, limits, args.trials)
    found = summary(cases)
    print(f"ratio: geometric mean {found['geomean']:.3f}, worst {found['worst']:.2f}")


def summary(cases: Sequence[Case]) -> dict[str, Any]:
    """Cases, and the geometric mean and the largest of their ratios."""
    ratios = [case.ratio for case in cases]
    return {
        "cases": [asdict(case) for case in cases],
        "geomean": statistics.geometric_mean(ratios),
        "worst": max(ratios),
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
    name: str, target: Target, measurer: Measurer, limits: Peak, trials: int, seed: int
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
        searching.progress(f"{name}: {engine} {best:.4f} ms, {tried} trials")
    ours, theirs = runs["ansor"], runs["metaschedule"]
    ours_s, theirs_s = interleaved(task, [_finalists(ours), _finalists(theirs)], measurer)
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


def _finalists(run: searching.Run) -> list[str]:
    """Traces of the fastest few."""
    ranked = sorted(run.outcomes, key=lambda outcome: outcome.latency)
    return [outcome.trace for outcome in ranked[:FINALISTS] if not outcome.error]


def interleaved(
    task: Task, sides: Sequence[Sequence[str]], measurer: Measurer
) -> tuple[float, ...]:
    """The best median seconds of each side's schedules, all measured in turns."""
    traces = [trace for side in sides for trace in side]
    times: dict[str, list[float]] = {trace: [] for trace in traces}
    for _ in range(REPEATS):
        for outcome in measurer.measure(task, traces):
            times[outcome.trace].append(outcome.latency)
    return tuple(min(statistics.median(times[trace]) for trace in side) for side in sides)


def _warm_up(target: Target) -> None:
    """What either search loads once and for all is not part of its first operator's time."""
    task = searching.operator_task("DEP", target)
    for engine in ("ansor", "metaschedule"):
        searching.opener(engine)(task, target, [], 0)


if __name__ == "__main__":
    main()
