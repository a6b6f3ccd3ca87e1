"""How much faster two boards measure than one.

    python benchmarks/boards.py [--trials 16] [--rounds 5] [--json FILE]

The boards are two of this machine's cores, each behind an SSH server of its own on loopback, so
it needs OpenSSH's server, two cores, and the tests' folder beside it. One board and two are
measured in turns; the ratio is that of the medians, and the range is of the ratio of each round.

What is to be shown is what the tool makes of a second board, and real boards come with processors
of their own, which two cores of one machine do not: what this machine builds is taken from them.
So candidates take long to run, as on slow boards (an unscheduled product of two matrices, slower
than the best that is known, as most candidates are: the same number of repeats each), and what
builds yields to what runs (nice). Even so two boards cannot be twice one here: the share of the
cores that building takes, which is printed, is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from tvm import s_tir, te

from ansor_deploy.devices.board import BoardSite
from ansor_deploy.devices.inventory import Inventory
from ansor_deploy.devices.ssh import connect
from ansor_deploy.measure.build import BuildJob
from ansor_deploy.measure.measurer import CHUNK, Measurer
from ansor_deploy.model.extract import task_of
from ansor_deploy.model.tasks import Task
from ansor_deploy.space.trace import dump
from ansor_deploy.target import Target
from benchmarks import searching

_TESTS = Path(__file__).resolve().parents[1] / "tests"
SIDE = 640
NICE = 10  # of what builds
FASTER = 2  # than a candidate the best that is known is: worth three repeats, and no more
NAMES = ("left", "right")


@dataclass(frozen=True)
class Run:
    """So many trials on so many boards. repeated: chunks measured twice, as the speed changed."""

    boards: int
    trials: int
    seconds: float
    repeated: int

    @property
    def rate(self) -> float:
        """Trials a second."""
        return self.trials / self.seconds

    def __str__(self) -> str:
        return f"{self.boards} board(s): {self.rate:.3f} trials/s ({self.repeated} repeated)"


def ratio(runs: Sequence[Run]) -> float:
    """The median rate of two boards over that of one."""
    one, two = _rates(runs)
    return statistics.median(two) / statistics.median(one)


def span(runs: Sequence[Run]) -> tuple[float, float]:
    """The least and the largest ratio of a round."""
    ratios = [two / one for one, two in zip(*_rates(runs), strict=True)]
    return min(ratios), max(ratios)


def _rates(runs: Sequence[Run]) -> tuple[list[float], list[float]]:
    one, two = ([run.rate for run in runs if run.boards == count] for count in (1, 2))
    return one, two


def main() -> None:
    """One board, two boards, and again; print as they come."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=16, help="a run (default: 16)")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    target = searching.host(1)
    task = _matmul(target)
    building = _build_seconds(task, target)
    print(f"{building:.2f} s of a processor to build a candidate", flush=True)
    runs: list[Run] = []
    with _boards(target) as sites, ExitStack() as stack:
        os.nice(NICE)
        measurers = [stack.enter_context(Measurer(target, sites[:count])) for count in (1, 2)]
        known = [_warmed(measurer, task) for measurer in measurers]
        for _ in range(args.rounds):
            for measurer, seconds in zip(measurers, known, strict=True):
                runs.append(_run(measurer, task, args.trials, seconds / FASTER))
                print(runs[-1], flush=True)
    print(f"two boards over one: {ratio(runs):.2f} ({span(runs)[0]:.2f} to {span(runs)[1]:.2f})")
    if args.json:
        args.json.write_text(json.dumps(summary(runs, building), indent=2) + "\n")


def summary(runs: Sequence[Run], building: float) -> dict[str, object]:
    """As written to the file. building: seconds of a processor to build a candidate."""
    return {
        "ratio": ratio(runs),
        "range": span(runs),
        "build_seconds": building,
        "runs": [asdict(run) for run in runs],
    }


def _warmed(measurer: Measurer, task: Task) -> float:
    """Seconds of the first trial, which every board has now had."""
    first = [measurer.submit(task, [_trace(task)]) for _ in measurer.sites]
    return min(outcome.latency for one in first for outcome in measurer.wait(one))


def _run(measurer: Measurer, task: Task, trials: int, best: float) -> Run:
    """Batches as a tuning run has them under way. best: seconds of the best that is known."""
    repeated, began = measurer.repeated, time.perf_counter()
    left, under_way = trials, deque()  # type: ignore[var-annotated]
    while left or under_way:
        while left and len(under_way) < measurer.depth:
            count = min(CHUNK, left)
            under_way.append(measurer.submit(task, [_trace(task)] * count, best))
            left -= count
        for outcome in measurer.wait(under_way.popleft()):
            if outcome.error:
                raise RuntimeError(outcome.message)
    seconds = time.perf_counter() - began
    return Run(len(measurer.sites), trials, seconds, measurer.repeated - repeated)


def _trace(task: Task) -> str:
    """Of the program as it stands."""
    return dump(s_tir.Schedule(task.mod).trace)


def _build_seconds(task: Task, target: Target, count: int = 8) -> float:
    job = BuildJob(task.workload.text, "trace", _trace(task))
    with Measurer(target) as measurer:
        measurer.builder.build([job] * 2)  # the workers are warm now
        began = time.perf_counter()
        for _ in range(count):
            measurer.builder.build([job])
        return (time.perf_counter() - began) / count


def _matmul(target: Target) -> Task:
    a, b = (te.placeholder((SIDE, SIDE), name=name) for name in "ab")
    k = te.reduce_axis((0, SIDE), name="k")
    c = te.compute((SIDE, SIDE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return task_of(te.create_prim_func([a, b, c]), "matmul", target)


@contextmanager
def _boards(target: Target) -> Iterator[list[BoardSite]]:
    """Two, each on a core; the user's devices are left alone."""
    sys.path.append(str(_TESTS))
    from helpers.plain_board import PlainBoard, add_board  # type: ignore[import-not-found]

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ.update(HOME=str(folder), XDG_CONFIG_HOME=str(folder / "config"))
        os.environ.pop("SSH_AUTH_SOCK", None)
        sites, inventory = [], Inventory.find()
        for name, core in zip(NAMES, sorted(os.sched_getaffinity(0)), strict=False):
            board = PlainBoard(folder / name, prefix=("taskset", "-c", str(core)))
            stack.callback(board.pull_plug)
            add_board(board.sshd, name, "host")
            connecting = partial(connect, inventory.get(name), inventory)
            sites.append(BoardSite(name, connecting, target.cores))
            stack.callback(sites[-1].close)
        if len(sites) < len(NAMES):
            sys.exit("needs two cores")
        yield sites


if __name__ == "__main__":
    main()
