"""The times of a network's kernels as candidates during tuning, and within the network.

NETWORK: a name of `zoo`, a light model of the package onnx ("light_inception_v2", with random
weights), or an ONNX file. Nothing is tuned: the kernels have default schedules.

Each task is measured as a candidate is during tuning, between two blocks of runs of the whole
network on the same cores. The sum of these times, each times its calls, is printed as a share of
the network's time. Kernels without a task count with their time in the network, where all are timed
as by `ansor-deploy profile`.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.options import json_option, networks_argument, number, python, save, target
from benchmarks.search.searching import default_trace, saved

if TYPE_CHECKING:
    from ansor_deploy.runtime.profile import Profile
    from ansor_deploy.target import Target

SECONDS = 2.0  # how long a profile runs
BLOCK_SECONDS = 0.1  # of whole runs, before and after a task is measured
# The fewest and the most runs of a block, beyond the first two, which are not counted.
FEWEST, MOST = 2, 60


@dataclass(frozen=True)
class Row:
    """A task, with microseconds of one call as a candidate and in the network."""

    task: str
    calls: int
    alone_us: float
    network_us: float

    def __str__(self) -> str:
        return f"{self.task[:39]:40}{self.calls:6d}{self.alone_us:12.1f}{self.network_us:12.1f}"


@click.command
@networks_argument
@click.option("--target", "name", default="host", show_default=True)
@number("--threads", 1)
@click.option("--out", type=Path, default=Path("out/alone"), help="Work folder.")
@json_option
def command(networks: Sequence[str], name: str, threads: int, out: Path, file: Path | None) -> None:
    """Build and time every network; print a table for each."""
    # TVM reads this when it is loaded; by default it uses half the cores of an x86 machine.
    os.environ["TVM_NUM_THREADS"] = str(threads)
    out.mkdir(parents=True, exist_ok=True)
    own = (out / "target.toml").resolve()
    own.write_text(f'extends = "{name}"\ncores = {threads}\n')
    tables = {}
    for network in networks:
        path = saved(network, out)
        rows, kernels, alone = _measured(path, own, target(str(own)))
        print(f"## {path.stem}\n{'task':40}{'calls':>6}{'alone us':>12}{'network us':>12}")
        print(*rows, sep="\n")
        print(f"all kernels {kernels:.3f} of the network, alone {alone:.3f}")
        listed = list(map(asdict, rows))
        tables[path.stem] = {"rows": listed, "kernels": kernels, "alone": alone}
    save(tables, file)


def _measured(path: Path, own: Path, on: Target) -> tuple[list[Row], float, float]:
    """The tasks; and the time of all kernels as a share of a run, in it and as candidates."""
    from ansor_deploy.runtime.model import load
    from ansor_deploy.runtime.profile import Replay, profile
    from ansor_deploy.ship.verify.draws import seeded_inputs

    library = path.with_suffix(".so")
    words = ["build", str(path), "-o", str(library), "--target", str(own), "--trials", "0"]
    words += ["--no-verify", "--registry", str(path.with_suffix(".db"))]
    python("-m", "ansor_deploy", *words)
    model = load(library, on.cores)
    values = seeded_inputs(model.interfaces[0].inputs, seed=0, upper=2)
    found = profile(model, values, SECONDS)
    alone = _alone(path, on, Replay(library, values.values()).whole)
    return _summed(found, alone)


def _summed(
    found: Profile, alone: dict[str, tuple[float, float]]
) -> tuple[list[Row], float, float]:
    """Rows and shares. alone: by workload, seconds as a candidate, and of a run meanwhile."""
    kernels = [(str((one.task or {}).get("key")), one) for one in found.kernels]
    shares = [
        alone[key][0] / alone[key][1] if key in alone else one.seconds / found.seconds
        for key, one in kernels
    ]
    rows = []
    for key, (seconds, _) in alone.items():
        if not (calls := [one for called, one in kernels if called == key]):
            continue  # the library has folded the task away
        mean = statistics.mean(one.seconds for one in calls)
        rows.append(Row(calls[0].name, len(calls), seconds * 1e6, mean * 1e6))
    return rows, sum(one.seconds for one in found.kernels) / found.seconds, sum(shares)


def _alone(path: Path, on: Target, whole: Callable[[], float]) -> dict[str, tuple[float, float]]:
    """By workload: seconds of a task as a candidate, and of a run just before and after."""
    from ansor_deploy.measure.measurer import Measurer
    from ansor_deploy.model.prepare import prepare

    found = {}
    with Measurer(on) as measurer:
        for task in prepare(path, on).tasks:
            before = _block(whole)
            (outcome,) = measurer.measure(task, [default_trace(task, on)])
            seconds = statistics.median(before + _block(whole))
            found[task.key.workload] = outcome.latency, seconds
    return found


def _block(run: Callable[[], float]) -> list[float]:
    """Seconds of several runs, without the first two, which warm up."""
    end = time.perf_counter() + BLOCK_SECONDS
    found = [run(), run()]
    while len(found) < 2 + FEWEST or (time.perf_counter() < end and len(found) < 2 + MOST):
        found.append(run())
    return found[2:]
