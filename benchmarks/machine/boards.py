"""How much faster several boards measure than one.

The boards are simulated: each is this machine with a home of its own, behind its own SSH server on
loopback. So this needs OpenSSH's server, and the tests' folder. One board and all of them are
measured in turns; the ratio is that of the medians, and the range is that of the ratios of rounds.

The benchmark shows whether the tool keeps several boards busy at the same time, while this machine
builds for them. Real boards have processors of their own; simulated ones share this machine's
cores. So a candidate sleeps for most of its time: its kernel calls usleep, and is slower than the
best one known, as most candidates are. Nothing here says how fast a board computes. The work of the
tool at both ends is real, and this machine does all of it: building, SSH, the agents, loading,
checking, and the reference kernel between chunks. With real boards, these cores would not do the
boards' share.
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
from ansor_deploy.measure.builder import BuildJob
from ansor_deploy.measure.measurer import CHUNK, Measurer
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.model.tasks import Task
from ansor_deploy.space.trace import dump
from ansor_deploy.target import Target
from benchmarks.options import json_option, number, save, target

_TESTS = Path(__file__).resolve().parents[2] / "tests"
PARTS = 4  # calls of usleep in a kernel
SLEEP = 150_000  # microseconds of a call
NICE = 10  # added to the niceness of building
# How many times faster the best latency known is than a candidate, which then runs only twice.
FASTER = 2


@dataclass(frozen=True)
class Round:
    """Seconds of equal runs on one board and on all, and how often a chunk was repeated.

    A chunk is measured again if the machine's speed changed meanwhile.
    """

    trials: int
    seconds: tuple[float, float]
    repeated: tuple[int, int]

    def __str__(self) -> str:
        one, together = (self.trials / seconds for seconds in self.seconds)
        return f"trials/s: {one:.3f} and {together:.3f} (repeated: {self.repeated})"


def ratio(rounds: Sequence[Round]) -> float:
    """The median rate of all boards over that of one."""
    one, together = zip(*(of.seconds for of in rounds), strict=True)
    return statistics.median(one) / statistics.median(together)


def span(rounds: Sequence[Round]) -> tuple[float, float]:
    """The least and the largest ratio of a round."""
    ratios = [one / together for one, together in (of.seconds for of in rounds)]
    return min(ratios), max(ratios)


@click.command
@number("--boards", 4)
@number("--trials", 64, "Of a run.")
@number("--rounds", 3)
@json_option
def command(boards: int, trials: int, rounds: int, file: Path | None) -> None:
    """Measure on one board and on all of them, in rounds; print each round."""
    on = target("host", 1)
    task = _sleeper(on)
    building = _build_seconds(task, on)
    print(f"{building:.2f} s of a processor to build a candidate", flush=True)
    found: list[Round] = []
    with _boards(on, boards) as sites, ExitStack() as stack:
        os.nice(NICE)
        measurers = [stack.enter_context(Measurer(on, sites[:n])) for n in (1, boards)]
        known = [_warmed(measurer, task) for measurer in measurers]
        for _ in range(rounds):
            pairs = zip(measurers, known, strict=True)
            runs = [_run(one, task, trials, seconds / FASTER) for one, seconds in pairs]
            found.append(Round(trials, *zip(*runs, strict=True)))
            print(found[-1], flush=True)
    low, high = span(found)
    print(f"{boards} boards over one: {ratio(found):.2f} ({low:.2f} to {high:.2f})")
    summary = {"ratio": ratio(found), "range": (low, high), "build_seconds": building}
    save({**summary, "rounds": [asdict(one) for one in found]}, file)


def _warmed(measurer: Measurer, task: Task) -> float:
    """Run a trial on every board; return the least seconds of a candidate."""
    first = [measurer.submit(task, [_trace(task)]) for _ in measurer.sites]
    return min(outcome.latency for one in first for outcome in measurer.wait(one))


def _run(measurer: Measurer, task: Task, trials: int, best: float) -> tuple[float, int]:
    """Keep batches in progress as a tuning run does; return seconds, and repeated chunks.

    best: the seconds of the best candidate known.
    """
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
    return time.perf_counter() - began, measurer.repeated - repeated


def _trace(task: Task) -> str:
    """The trace of the unscheduled program."""
    return dump(s_tir.Schedule(task.mod).trace)


def _build_seconds(task: Task, target: Target, count: int = 8) -> float:
    job = BuildJob(task.workload.text, "trace", _trace(task))
    with Measurer(target) as measurer:
        measurer.builder.build([job] * 2)  # warms the workers up
        began = time.perf_counter()
        for _ in range(count):
            measurer.builder.build([job])
        return (time.perf_counter() - began) / count


def _sleeper(target: Target) -> Task:
    """A task that takes as long as on a slow board, but no processor time."""
    a = te.placeholder((PARTS,), name="a")
    slept = lambda: tirx.call_extern("int32", "usleep", SLEEP).astype("float32")  # noqa: E731 - 0
    b = te.compute((PARTS,), lambda i: a[i] + slept(), name="b")
    return task_of(te.create_prim_func([a, b]), "sleep", target)


@contextmanager
def _boards(target: Target, count: int) -> Iterator[list[BoardSite]]:
    """Boards that share this machine's cores; the user's own devices are not touched."""
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
