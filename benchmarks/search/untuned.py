"""What nobody tuned beside what 64 trials find: the heaviest tasks of some networks, in turns.

NETWORK: a name of `zoo`, a light model of the package onnx, or an ONNX file. The convolutions
and matrix multiplications that must take it longest are searched. What was measured is
kept in the registry; a task of which that has enough is not searched again. Then the default
schedule and the fastest programs run in turns, and the tuned one is what a build would ship.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from ansor_deploy.measure.libraries import KEEP
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.tasks import Task
from ansor_deploy.registry.record import Measurement
from ansor_deploy.registry.store import Registry
from ansor_deploy.search import Search, open_search
from ansor_deploy.search.context import open_context
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.target import Target
from ansor_deploy.tune.final import winner
from benchmarks.options import json_option, networks_argument, number, save, target, target_option
from benchmarks.search import searching

HEADER = f"{'network':24}{'task':36}{'trials':>7}{'untuned us':>12}{'tuned us':>10}{'ratio':>7}"


@dataclass(frozen=True)
class Row:
    """A task. Microseconds of one run, both of the same turns."""

    network: str
    task: str
    key: str
    op: str
    trials: int
    untuned_us: float
    tuned_us: float

    @property
    def ratio(self) -> float:
        """The default schedule's time over the tuned one's."""
        return self.untuned_us / self.tuned_us

    def __str__(self) -> str:
        return (
            f"{self.network[:23]:24}{self.task[:35]:36}{self.trials:7d}{self.untuned_us:12.1f}"
            f"{self.tuned_us:10.1f}{self.ratio:7.2f}"
        )


@click.command
@networks_argument
@target_option
@number("--threads", 1)
@number("--tasks", 3, "Of each network.")
@number("--trials", 64, "Of a task.")
@click.option("--registry", "path", type=Path, default=Path("out/untuned.db"))
@json_option
def command(
    networks: Sequence[str],
    name: str,
    threads: int,
    tasks: int,
    trials: int,
    path: Path,
    file: Path | None,
) -> None:
    """Search each network's heaviest tasks, compare and print them as they come."""
    on = target(name, threads)
    print(HEADER, flush=True)
    rows: dict[str, Row] = {}
    with Registry.open(path) as registry, Measurer(on) as measurer:
        registry.add_target(on)
        for network in networks:
            for task in _contractions(network, on)[:tasks]:
                key = task.key.workload
                if key not in rows:
                    _search(task, on, registry, measurer, trials)
                    rows[key] = _row(Path(network).stem, task, on, registry, measurer)
                    print(rows[key], flush=True)
    for op in sorted({row.op for row in rows.values()}):
        print(f"{op}: {_summary([row for row in rows.values() if row.op == op])}")
    print(f"all: {_summary(list(rows.values()))}")
    save([asdict(row) for row in rows.values()], file)


def _contractions(name: str, target: Target) -> list[Task]:
    """A network's convolutions and matrix multiplications, heaviest first."""
    tasks = searching.network_tasks(name, target)
    return [task for task in tasks if "conv" in task.workload.op or "matmul" in task.workload.op]


def _search(
    task: Task, target: Target, registry: Registry, measurer: Measurer, trials: int
) -> None:
    """Search a task that nobody has searched so long, and keep what was measured."""
    registry.add_workloads([task.workload])
    if registry.trials([task.key])[task.key] >= trials:
        return
    context = open_context(registry, target, shipped_rules(target.kind), seed=0)

    def open_(task: Task, target: Target, known: Sequence[Measurement], seed: int) -> Search:
        return open_search("ansor", task, known, context)

    run = searching.search(open_, task, target, measurer, trials, seed=0)
    features = [context.features(task, one.trace) for one in run.outcomes]
    pairs = zip(run.outcomes, features, strict=True)
    registry.add_batch([searching.measurement(task, one, rows) for one, rows in pairs], [])


def _row(network: str, task: Task, target: Target, registry: Registry, measurer: Measurer) -> Row:
    known = list(registry.measurements(target.fingerprint, task.key))
    default = searching.default_trace(task, target)
    fastest = [one.trace for one in sorted(known, key=lambda one: one.latency)[:KEEP]]
    traces = list(dict.fromkeys([default, *fastest]))
    times = [one.seconds for one in measurer.head_to_head(task, traces, default)]
    untuned, tuned = (1e6 * statistics.median(times[at]) for at in (0, winner(times)))
    key, op = task.key.workload, task.workload.op
    return Row(network, task.name, key, op, len(known), untuned, tuned)


def _summary(rows: Sequence[Row]) -> str:
    ratios = [row.ratio for row in rows]
    return (
        f"{len(rows)} tasks, untuned over tuned {statistics.geometric_mean(ratios):.3f} in the "
        f"geometric mean, {max(ratios):.2f} at worst"
    )
