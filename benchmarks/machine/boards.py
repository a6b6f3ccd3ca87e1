"""How much faster several boards measure than one.

The boards are simulated: each is an account of this machine with a home of its own, behind an SSH
server of its own on loopback, so it needs OpenSSH's server and the tests' folder beside it. One
board and all of them are measured in turns; the ratio is that of the medians, and the range is of
the ratio of each round.

What is to be shown is what the tool makes of further boards: whether they work at the same time,
while this machine builds for them. Real boards come with processors of their own, which the cores
of one machine are not. So a candidate sleeps for most of its time, as on a slow board of which this
machine knows only that no answer is there yet: a kernel that calls usleep, slower than the best
that is known, as most candidates are. Nothing here says how fast a board computes. What the tool
does at both ends is real, and is all done by this machine: building, the way through SSH, the
agents, loading, checking, and the reference kernel between chunks. Of a real board's share of it
these cores would be free.
"""

from __future__ import annotations

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

import click
from tvm import s_tir, te, tirx

from ansor_deploy.devices.board import BoardSite
from ansor_deploy.devices.inventory import Inventory
from ansor_deploy.devices.ssh import connect
from ansor_deploy.measure.build import BuildJob
from ansor_deploy.measure.measurer import CHUNK, Measurer
from ansor_deploy.model.extract import task_of
from ansor_deploy.model.tasks import Task
from ansor_deploy.space.trace import dump
from ansor_deploy.target import Target
from benchmarks.options import json_option, number, save
from benchmarks.search import searching

_TESTS = Path(__file__).resolve().parents[2] / "tests"
PARTS, SLEEP = 4, 150_000  # of a kernel: so often so many microseconds
NICE = 10  # of what builds
FASTER = 2  # than a candidate the best that is known is: it is repeated once, and no more


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
    """The median rate of all boards over that of one."""
    one, all_ = _rates(runs)
    return statistics.median(all_) / statistics.median(one)


def span(runs: Sequence[Run]) -> tuple[float, float]:
    """The least and the largest ratio of a round."""
    ratios = [together / alone for alone, together in zip(*_rates(runs), strict=True)]
    return min(ratios), max(ratios)


def _rates(runs: Sequence[Run]) -> tuple[list[float], list[float]]:
    most = max(run.boards for run in runs)
    one, all_ = ([run.rate for run in runs if run.boards == count] for count in (1, most))
    return one, all_


@click.command
@number("--boards", 4)
@number("--trials", 64, "Of a run.")
@number("--rounds", 3)
@json_option
def command(boards: int, trials: int, rounds: int, file: Path | None) -> None:
    """One board, all boards, and again; print as they come."""
    target = searching.host(1)
    task = _sleeper(target)
    building = _build_seconds(task, target)
    print(f"{building:.2f} s of a processor to build a candidate", flush=True)
    runs: list[Run] = []
    with _boards(target, boards) as sites, ExitStack() as stack:
        os.nice(NICE)
        counts = (1, boards)
        measurers = [stack.enter_context(Measurer(target, sites[:count])) for count in counts]
        known = [_warmed(measurer, task) for measurer in measurers]
        for _ in range(rounds):
            for measurer, seconds in zip(measurers, known, strict=True):
                runs.append(_run(measurer, task, trials, seconds / FASTER))
                print(runs[-1], flush=True)
    low, high = span(runs)
    print(f"{boards} boards over one: {ratio(runs):.2f} ({low:.2f} to {high:.2f})")
    save(summary(runs, building), file)


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


def _sleeper(target: Target) -> Task:
    """A task that takes as long as a slow board, and no processor."""
    a = te.placeholder((PARTS,), name="a")
    slept = lambda: tirx.call_extern("int32", "usleep", SLEEP).astype("float32")  # noqa: E731 - 0
    b = te.compute((PARTS,), lambda i: a[i] + slept(), name="b")
    return task_of(te.create_prim_func([a, b]), "sleep", target)


@contextmanager
def _boards(target: Target, count: int) -> Iterator[list[BoardSite]]:
    """Boards that share this machine's cores; the user's devices are left alone."""
    sys.path.append(str(_TESTS))
    from helpers.plain_board import PlainBoard, add_board  # type: ignore[import-not-found]

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ.update(HOME=str(folder), XDG_CONFIG_HOME=str(folder / "config"))
        os.environ.pop("SSH_AUTH_SOCK", None)
        sites, inventory = [], Inventory.find()
        for name in (f"board-{number}" for number in range(1, count + 1)):
            board = PlainBoard(folder / name)
            stack.callback(board.pull_plug)
            add_board(board.sshd, name, "host")
            connecting = partial(connect, inventory.get(name), inventory)
            sites.append(BoardSite(name, connecting, target.cores))
            stack.callback(sites[-1].close)
        yield sites
