"""Built libraries beside other engines on one model, in one process and on the same cores.

Prints one line of JSON. ansor_deploy/ship/race/turn.py explains how they take turns.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from ansor_deploy.request import ENGINES
from ansor_deploy.ship.race.turn import PAUSE_SECONDS, UNCOUNTED, WARM_SECONDS
from benchmarks.networks import engines
from benchmarks.networks.engines import Run
from benchmarks.options import Listed, cores

TURNS = 8  # of each runner
BLOCK_SECONDS = 0.5  # of a runner's block in a turn


@dataclass(frozen=True)
class Race:
    """The median seconds of each runner in each turn, by its name."""

    threads: int
    turns: Mapping[str, tuple[float, ...]]

    def milliseconds(self, name: str) -> float:
        """The median over turns, in milliseconds."""
        return statistics.median(self.turns[name]) * 1e3

    def ratio(self, name: str, other: str) -> tuple[float, float, float]:
        """Quartiles of the ratio of one runner's time to another's in the same turn."""
        pairs = zip(self.turns[name], self.turns[other], strict=True)
        low, middle, high = statistics.quantiles([a / b for a, b in pairs], method="inclusive")
        return low, middle, high

    def to_json(self) -> dict[str, Any]:
        """The object for JSON, with all medians, and ratios of the first runner to the others."""
        first, *others = self.turns
        return {
            "threads": self.threads,
            "ms": {name: self.milliseconds(name) for name in self.turns},
            "ratios": {name: self.ratio(first, name) for name in others},
            "turns": self.turns,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Race:
        """The race of a `to_json` object."""
        return cls(data["threads"], data["turns"])


beside_option = click.option(
    "--beside", type=Listed(click.Choice(sorted(ENGINES))), default=["onnxruntime"]
)


@click.command
@click.argument("model", type=Path)
@click.argument("libraries", type=Path, nargs=-1, required=True)
@click.option("--threads", default=cores())
@beside_option
@click.option(
    "--compare/--no-compare", default=True, help="The numbers, as those of one precision."
)
def command(
    model: Path, libraries: Sequence[Path], threads: int, beside: list[str], compare: bool
) -> None:
    """Time libraries of one model beside other engines, and print the result."""
    runs = load(model, libraries, beside, threads, compares=compare)
    print(json.dumps(race(runs, threads).to_json()))


def load(
    model: Path,
    libraries: Sequence[Path],
    beside: list[str],
    threads: int,
    *,
    compares: bool = True,
) -> dict[str, Run]:
    """Calls of libraries and engines on the same seeded inputs. compares: check their outputs."""
    values = engines.inputs(libraries[0])
    runs = {path.stem: engines.ours(path, values, threads) for path in libraries}
    runs |= {name: engines.theirs(name, model, values, threads) for name in beside}
    if not compares:
        return runs
    truth = engines.theirs("onnxruntime", model, values, threads)()
    for name, run in runs.items():
        compare(f"{model.stem} by {name}", run(), truth)
    return runs


def compare(name: str, found: list[np.ndarray], truth: list[np.ndarray]) -> None:
    """AssertionError where outputs differ, by the rule of `verify`: then no time counts."""
    from ansor_deploy.ship.verify.tolerance import compare as judge

    for one, other in zip(found, truth, strict=True):
        ok, _, error = judge(one, other)
        if not ok:
            raise AssertionError(f"{name}: outputs differ by {error:.2g} of their scale")


def race(runs: Mapping[str, Run], threads: int) -> Race:
    """Time blocks of runs of each runner in turns."""
    clocked = [partial(_seconds, run) for run in runs.values()]
    turns = itertools.islice(in_turns(clocked, BLOCK_SECONDS), TURNS)
    return Race(threads, dict(zip(runs, zip(*turns, strict=True), strict=True)))


def in_turns(runs: Sequence[Callable[[], float]], seconds: float) -> Iterator[list[float]]:
    """Endless turns: for each runner the median of a block of so many seconds.

    runs: functions that run a runner once and return the seconds. Each turn begins with another
    runner.
    """
    for number in itertools.count():
        order = sorted(range(len(runs)), key=lambda at: (at - number) % len(runs))
        found = {at: statistics.median(_block(runs[at], seconds)) for at in order}
        yield [found[at] for at in range(len(runs))]


def _block(run: Callable[[], float], seconds: float) -> list[float]:
    time.sleep(PAUSE_SECONDS)
    _timed(run, WARM_SECONDS, most=UNCOUNTED)
    return _timed(run, seconds)


def _timed(run: Callable[[], float], seconds: float, most: float = math.inf) -> list[float]:
    """Seconds of each run, until a time or a number of runs is reached; at least one run."""
    times: list[float] = []
    total = 0.0
    while not times or (total < seconds and len(times) < most):
        times.append(run())
        total += times[-1]
    return times


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
