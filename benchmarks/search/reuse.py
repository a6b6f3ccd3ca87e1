"""What a registry of four networks is worth to a fifth.

The known networks are tuned into one registry. The new one's tasks are then exact (their own
schedules are there), near (those of another size are) or missing. Each near task is searched three
times: cold, with an empty registry; with what the cost model has learnt from the four networks; and
with that and the measurements of its relatives, as a build with the registry does. The last search
needs no trial of the default schedule first; at its end, that runs in turns with the best few in
any case.

To exclude chance, all programs of a near task (at most --programs) are measured once, and the
searches replay these measurements with many seeds. The best program of a search may owe its place
to a lucky timing, which is why a build lets the best few run in turns. The same is done here with
the best of all. The trials that count are those after which a build would have shipped a program as
fast as the cold search's last, within the margin of a tie in turns.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from ansor_deploy.measure.libraries import KEEP
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.measure.outcome import UNMEASURED, Outcome
from ansor_deploy.model.tasks import Task
from ansor_deploy.pipeline import plan, tune
from ansor_deploy.registry.record import Measurement
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import Budget, Request
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.target import Target
from ansor_deploy.tune.plan import Plan, PlanRow
from ansor_deploy.tune.search import Search, open_search
from ansor_deploy.tune.search.context import SearchContext, open_context
from ansor_deploy.tune.trial import MARGIN
from ansor_deploy.views.plain import QuietReport
from benchmarks.options import Listed, json_option, number, progress, save, target
from benchmarks.search import searching, spaces
from benchmarks.search.spaces import Space

SEARCHES = ("cold", "model", "near")
KNOWN = ("light_squeezenet", "light_resnet50", "light_vgg19", "light_inception_v1")


@dataclass(frozen=True)
class Row:
    """One near task searched with one seed. Latencies in milliseconds, all from the same turns.

    trials: for each search, until it held a program as fast as the cold one's last; None where it
    never did. ms: of what each held at its end. default_ms: of the default schedule. served_ms: of
    that or the first trial of a search with neighbours, whichever is faster.
    """

    task: str
    distance: float
    seed: int
    trials: dict[str, int | None]
    default_ms: float
    served_ms: float
    ms: dict[str, float]

    def __str__(self) -> str:
        counts = "".join(f"{self.trials[name] or '-':>6}" for name in SEARCHES)
        times = (self.default_ms, self.served_ms, *(self.ms[name] for name in SEARCHES))
        columns = "".join(f"{ms:9.4f}" for ms in times)
        return f"{self.task[:30]:30}{self.distance:6.1f}{counts}{columns}"


@dataclass(frozen=True)
class Setting:
    """How near tasks are searched, as the options say."""

    target: Target
    trials: int
    seed: int
    seeds: int
    programs: int


@click.command
@click.option("--new", default="light_inception_v2", help="A network of `zoo`, or an ONNX file.")
@click.option("--known", type=Listed(), default=KNOWN, help="The same, with commas.")
@number("--tasks", 12, "Near tasks that are searched.")
@number("--trials", 64, "Of a task.")
@number("--min-impact", 0.01)
@number("--seeds", 3)
@number("--seed", 0, "The first one.")
@number("--programs", 512, "Of a task's space, at most.")
@number("--threads", 2)
@click.option("--registry", "path", type=Path, help="Kept, and filled where it is not.")
@json_option
def command(
    new: str, known: list[str], tasks: int, min_impact: float, threads: int, path: Path | None,
    file: Path | None, **how: Any,
) -> None:  # fmt: skip
    """Fill the registry, plan the new network, search its near tasks; print and write."""
    setting = Setting(target("host", threads), **how)
    with tempfile.TemporaryDirectory() as folder:
        registry = path or Path(folder) / "registry.db"
        budget = Budget(None, per_task=setting.trials, min_impact=min_impact)
        request = Request(setting.target, registry, budget, seed=setting.seed)
        for name in known:
            result = tune([searching.saved(name, folder)], request, QuietReport())
            progress(f"{name}: {result.trials} trials")
        planned = plan([searching.saved(new, folder)], request, QuietReport())
        near = [row for row in planned.rows if row.status == "near"][:tasks]
        rows = _searched(near, registry, setting)
    shares = {status: _share(planned, status) for status in ("hit", "near", "miss", "skip")}
    said = ", ".join(f"{count} {status} ({time:.0%})" for status, (count, time) in shares.items())
    print(f"{new} after {', '.join(known)}: tasks (share of the time): {said}")
    _print(rows, setting.trials)
    found = {"new": new, "known": known, "trials": setting.trials, "shares": shares}
    save({**found, "rows": [asdict(row) for row in rows]}, file)


def _share(planned: Plan, status: str) -> tuple[int, float]:
    """The number of the new network's tasks with a status, and their share of its time."""
    rows = [row for row in planned.rows if row.status == status]
    return len(rows), sum(row.impact for row in rows)


def _searched(near: Sequence[PlanRow], path: Path, setting: Setting) -> list[Row]:
    """Search every near task with every seed, in each of the ways."""
    rows = []
    with Registry.open(path, write=False) as registry:
        found = _spaces(near, setting)
        measurer = spaces.replayed(found)
        for row in near:
            for seed in range(setting.seed, setting.seed + setting.seeds):
                # As in a build, only a search with relatives begins without the default schedule.
                runs = {
                    name: searching.search(
                        _opener(registry, name), row.task, setting.target, measurer,
                        setting.trials, seed, default_first=name != "near",
                    ).outcomes
                    for name in SEARCHES
                }  # fmt: skip
                rows.append(_row(row, seed, runs, found[row.task.workload.key]))
                progress(str(rows[-1]))
    return rows


def _spaces(near: Sequence[PlanRow], setting: Setting) -> dict[str, Space]:
    """The programs of the near tasks, all measured."""
    found, on = {}, setting.target
    with Measurer(on) as measurer:
        for task in (row.task for row in near):
            traces = spaces.programs(task, on, setting.programs, setting.seed)
            found[task.workload.key] = spaces.measured(task, traces, measurer)
            progress(f"{task.name}: {len(traces)} programs")
    return found


def _opener(registry: Registry, name: str) -> searching.Opener:
    """A function that opens one of `SEARCHES`, each time with a new cost model."""

    def open_(task: Task, target: Target, known: Sequence[Measurement], seed: int) -> Search:
        rules = shipped_rules(target.kind)
        if name == "cold":
            return open_search("ansor", task, known, SearchContext(target, rules, seed))
        context = open_context(registry, target, rules, seed)
        if name == "model":
            context.neighbours = lambda task: ()
            context.relatives = lambda workload: ()
        return open_search("ansor", task, known, context)

    return open_


def _row(row: PlanRow, seed: int, runs: Mapping[str, Sequence[Outcome]], space: Space) -> Row:
    """A row from the runs. Programs that a space lacks were not measured, and are no trials."""
    ran = {name: [o for o in run if o.error != UNMEASURED] for name, run in runs.items()}
    default, *_ = space.first
    best = {
        name: [1e3 * min(map(space.judged, moment)) for moment in _held(run, default)]
        for name, run in ran.items()
    }
    goal = best["cold"][-1] * (1 + MARGIN)
    return Row(
        task=row.task.name,
        distance=row.neighbours[0].distance,
        seed=seed,
        trials={name: reached(found, goal) for name, found in best.items()},
        default_ms=1e3 * space.judged(default),
        served_ms=best["near"][0],
        ms={name: found[-1] for name, found in best.items()},
    )


def _held(outcomes: Sequence[Outcome], default: str) -> list[list[str]]:
    """After each trial, the traces that would run in turns: the default and the best few."""
    firsts = (outcomes[:trials] for trials in range(1, len(outcomes) + 1))
    ranked = (sorted(some, key=lambda one: one.latency)[:KEEP] for some in firsts)
    return [[default, *(one.trace for one in few)] for few in ranked]


def reached(times: Sequence[float], goal: float) -> int | None:
    """The trials until a latency is reached; None if it never is."""
    return next((at for at, ms in enumerate(times, start=1) if ms <= goal), None)


def means(rows: Sequence[Row], trials: int) -> dict[str, float]:
    """Mean trials of each search; one that never reached the goal counts with all its trials."""
    return {name: statistics.mean(row.trials[name] or trials for row in rows) for name in SEARCHES}


def _print(rows: Sequence[Row], trials: int) -> None:
    columns = "".join(f"{name:>6}" for name in SEARCHES) + f"{'default':>9}{'served':>9}"
    columns += "".join(f"{name + ' ms':>9}" for name in SEARCHES)
    print(f"{'task':30}{'apart':>6}{columns}")
    for row in rows:
        print(row)
    if not rows:
        return
    found = means(rows, trials)
    counts = ", ".join(f"{found[name]:.1f} {name}" for name in SEARCHES)
    print(f"trials to what {trials} cold ones bring: {counts}: {found['near'] / found['cold']:.2f}")
    never = sum(row.trials["near"] is None for row in rows)
    print(f"of {len(rows)} searches with neighbours {never} never got there")
