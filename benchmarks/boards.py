"""How much faster two boards measure than one.

    python benchmarks/boards.py [--trials 32] [--rounds 3] [--json FILE]

The boards are two of this machine's cores, each behind an SSH server of its own on loopback, so
it needs OpenSSH's server and two cores. This machine also builds the candidates, on the same
cores: they are chosen so that they take long to run (an unscheduled product of two matrices),
which is what slow boards do with any. Both figures are printed. Where there are only two cores,
what this machine does for each trial is taken from the boards, and the ratio is too low. Needs
the tests' folder beside it.
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

import searching
from tvm import s_tir, te

from ansor_deploy.devices.inventory import Inventory
from ansor_deploy.devices.remote import open_site
from ansor_deploy.devices.site import DeviceSite
from ansor_deploy.devices.ssh import connect
from ansor_deploy.measure.build import BuildJob
from ansor_deploy.measure.measurer import CHUNK, Measurer
from ansor_deploy.model.tasks import Task, task_of
from ansor_deploy.search.trace import dump
from ansor_deploy.target import Target

_TESTS = Path(__file__).resolve().parents[1] / "tests"
SIDE = 512
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
    one, two = ([run.rate for run in runs if run.boards == count] for count in (1, 2))
    return statistics.median(two) / statistics.median(one)


def main() -> None:
    """One board, two boards, and again; print as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=32, help="a run (default: 32)")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    target = searching.host(1)
    task = _matmul(target)
    runs: list[Run] = []
    with _boards(target) as sites:
        building = _build_seconds(task, target)
        print(f"{building:.2f} s to build a candidate", flush=True)
        for _ in range(args.rounds):
            for count in (1, 2):
                runs.append(_run(sites[:count], task, target, args.trials))
                print(runs[-1], flush=True)
    print(f"two boards over one: {ratio(runs):.2f}")
    if args.json:
        args.json.write_text(json.dumps(summary(runs, building), indent=2) + "\n")


def summary(runs: Sequence[Run], building: float) -> dict[str, object]:
    """As written to the file. building: seconds to build a candidate."""
    return {"ratio": ratio(runs), "build_seconds": building, "runs": [asdict(run) for run in runs]}


def _run(sites: Sequence[DeviceSite], task: Task, target: Target, trials: int) -> Run:
    """Batches as a tuning run has them under way; a first trial on every board is not counted."""
    trace = dump(s_tir.Schedule(task.mod).trace)
    with Measurer(target, sites) as measurer:
        for first in [measurer.submit(task, [trace]) for _ in sites]:
            measurer.wait(first)
        repeated, began = measurer.repeated, time.perf_counter()
        left, under_way = trials, deque()  # type: ignore[var-annotated]
        while left or under_way:
            while left and len(under_way) < measurer.depth:
                count = min(CHUNK, left)
                under_way.append(measurer.submit(task, [trace] * count))
                left -= count
            for outcome in measurer.wait(under_way.popleft()):
                if outcome.error:
                    raise RuntimeError(outcome.message)
        seconds = time.perf_counter() - began
        return Run(len(sites), trials, seconds, measurer.repeated - repeated)


def _build_seconds(task: Task, target: Target, count: int = 8) -> float:
    job = BuildJob(task.workload.text, "trace", dump(s_tir.Schedule(task.mod).trace))
    with Measurer(target) as measurer:
        measurer.builder.build([job] * 2)  # the workers are warm now
        began = time.perf_counter()
        measurer.builder.build([job] * count)
        return (time.perf_counter() - began) / count


def _matmul(target: Target) -> Task:
    a, b = (te.placeholder((SIDE, SIDE), name=name) for name in "ab")
    k = te.reduce_axis((0, SIDE), name="k")
    c = te.compute((SIDE, SIDE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return task_of(te.create_prim_func([a, b, c]), "matmul", target)


@contextmanager
def _boards(target: Target) -> Iterator[list[DeviceSite]]:
    """Two, each on a core; the user's devices are left alone."""
    sys.path += [str(_TESTS), str(_TESTS / "device")]
    from plain_board import PlainBoard, add_board  # type: ignore[import-not-found]

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
            sites.append(DeviceSite(name, connecting, partial(open_site, name, cores=target.cores)))
            stack.callback(sites[-1].close)
        if len(sites) < len(NAMES):
            sys.exit("needs two cores")
        yield sites


if __name__ == "__main__":
    main()
