"""One case of the paper under our search and under TVM's MetaSchedule, built and timed alike.

The best few programs of each search run in turns, then the best of each side against each other, in
one process: among many close candidates, the fastest single timing is often a lucky one.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ansor_deploy.model.tasks import Task
from ansor_deploy.registry.record import Measurement
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.target import Target
from ansor_deploy.tune.search import Search, open_search
from ansor_deploy.tune.search.context import SearchContext
from benchmarks.machine.peak import Peak, measured_apart
from benchmarks.options import progress
from benchmarks.search import searching
from benchmarks.search.operators_te import CASES
from benchmarks.search.results import Bench, Found

OURS, THEIRS = "ansor", "metaschedule"
FINALISTS = 4  # of each search
ROUNDS = 3  # of turns between the two winners


def compare(bench: Bench, case: str, trials: int) -> Found:
    """Both searches' final programs in turns: milliseconds, ratio and its quartiles, the limit.

    Below 1 ours is faster. The limit is the time at this machine's peak arithmetic or memory rate,
    whichever is longer; tensors that stay in a cache may be read faster than that.
    """
    task = searching.operator_task(case, bench.target)
    sides = [searched(bench, case, engine, trials)["finalists"] for engine in (OURS, THEIRS)]

    def find() -> Found:
        return {**_duel(bench, task, *sides), "limit_ms": _limit(bench, case, task) * 1e3}

    return bench.results.once("operators", _about(bench, case, trials), find)


def searched(bench: Bench, case: str, engine: str, trials: int) -> Found:
    """The result of one search: its fastest programs, and the seconds that it took.

    RuntimeError where none of its programs ran.
    """

    def find() -> Found:
        task = searching.operator_task(case, bench.target)

        def open_(task: Task, on: Target, known: Sequence[Measurement], seed: int) -> Search:
            context = SearchContext(on, shipped_rules(on.kind), seed)
            return open_search(engine, task, known, context)

        open_(task, bench.target, [], bench.seed)  # what is loaded only once is not counted
        where = (bench.target, bench.measurer)
        first = engine == OURS
        run = searching.search(open_, task, *where, trials, bench.seed, default_first=first)
        if not run.fastest(1):
            raise RuntimeError(f"{case}: nothing that {engine} proposed ran")
        progress(f"{case}: {engine} {run.fastest(1)[0]}, {len(run.outcomes)} trials")
        return {
            "trials": len(run.outcomes),
            "seconds": run.seconds,
            "searching": run.searching,
            "finalists": [outcome.trace for outcome in run.fastest(FINALISTS)],
        }

    about = {**_about(bench, case, trials), "engine": engine}
    return bench.results.once("search", about, find)


def _duel(bench: Bench, task: Task, *sides: Sequence[str]) -> Found:
    seconds = iter(_in_turns(bench, task, [trace for side in sides for trace in side]))
    winners = [min(side, key=lambda _: next(seconds)) for side in sides]
    turns = [_turns(bench, task, winners) for _ in range(ROUNDS)]
    ours, theirs = ([one for turn in turns for one in turn[at]] for at in (0, 1))
    ratios = [own / other for own, other in zip(ours, theirs, strict=True)]
    low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
    medians = {"ours_ms": ours, "metaschedule_ms": theirs}
    found = {name: statistics.median(times) * 1e3 for name, times in medians.items()}
    return {**found, "ratio": ratio, "low": low, "high": high}


def _in_turns(bench: Bench, task: Task, traces: Sequence[str]) -> list[float]:
    """Median seconds of each schedule."""
    return [statistics.median(times) for times in _turns(bench, task, traces)]


def _turns(bench: Bench, task: Task, traces: Sequence[str]) -> list[tuple[float, ...]]:
    found = bench.measurer.head_to_head(task, traces)
    if failed := [one for one in found if one.error]:
        raise RuntimeError(f"{task.name}: it ran before: {failed[0]}")
    return [one.seconds for one in found]


def _limit(bench: Bench, case: str, task: Task) -> float:
    """Seconds at this machine's peak, or at its memory's bandwidth, whichever is longer."""
    limits = Peak(**bench.results.once("peak", {}, lambda: asdict(measured_apart())))
    flops = CASES[case].flops or task.flops
    return max(flops / limits.gflops, task.workload.bytes / limits.gbytes) / 1e9


def _about(bench: Bench, case: str, trials: int) -> dict[str, Any]:
    return {"case": case, "trials": trials, "seed": bench.seed}
