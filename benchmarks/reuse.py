"""What a registry of four networks is worth to a fifth.

    python benchmarks/reuse.py [--new mobilenet_v2_075] [--known squeezenet,...] [--tasks 8]
                               [--trials 64] [--seeds 3] [--registry FILE] [--small] [--json FILE]

The known networks are tuned into one registry. The new one's tasks are then exact (its own
schedule is there), near (that of another size is) or missing. Each near task is searched twice,
with its neighbours and as if it had none; the cost model knows the four networks both times.

What a search held best after so many trials is a lucky timing, which is why a build lets the best
few run in turns. The same is done here, for the best few at every moment of either search, all of
them together: the trials counted are those after which a build would have shipped what is as fast
as what the search without neighbours ended with, give or take a fiftieth.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import onnx
import searching
import zoo

from ansor_deploy.measure.measurer import KEEP, Measurer
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.tasks import Task
from ansor_deploy.pipeline import plan, tune
from ansor_deploy.plan import Budget, Plan, PlanRow
from ansor_deploy.registry.record import Measurement
from ansor_deploy.registry.store import Registry
from ansor_deploy.report.plain import QuietReport
from ansor_deploy.rule import shipped_rules
from ansor_deploy.search import Search, open_search
from ansor_deploy.search.default import default_schedule
from ansor_deploy.search.kit import open_kit
from ansor_deploy.search.trace import dump
from ansor_deploy.session import Session
from ansor_deploy.target import Target

AS_FAST = 0.02  # share by which two schedules may differ that count as equally fast
KNOWN = ("squeezenet", "resnet50", "mobilenet_v2", "bert_base")
VARIANTS: dict[str, Callable[[], onnx.ModelProto]] = {
    **zoo.NETWORKS,
    "mobilenet_v2_075": lambda: zoo.mobilenet_v2(width=0.75, size=192),
    "resnet50_160": lambda: zoo.resnet50(size=160),
    "squeezenet_160": lambda: zoo.squeezenet(size=160),
    "bert_64": lambda: zoo.bert_base(sequence=64),
}
SMALL: dict[str, Callable[[], onnx.ModelProto]] = {
    "squeezenet": lambda: zoo.squeezenet(size=64, classes=10),
    "resnet50": lambda: zoo.resnet50(size=64, width=16, blocks=(1, 1, 1, 1), classes=10),
    "mobilenet_v2": lambda: zoo.mobilenet_v2(0.35, 64, zoo.MOBILENET_V2[:4], classes=10),
    "resnet3d18": lambda: zoo.resnet3d18(4, 32, 16, (1, 1), classes=10),
    "mobilenet_v2_075": lambda: zoo.mobilenet_v2(0.5, 96, zoo.MOBILENET_V2[:4], classes=10),
}


@dataclass(frozen=True)
class Shares:
    """Of the new network's tasks, as many and as much of its time as the registry knows."""

    tasks: dict[str, int]
    time: dict[str, float]

    def __str__(self) -> str:
        told = [f"{n} {status} ({self.time[status]:.0%})" for status, n in self.tasks.items()]
        return f"tasks (share of the time): {', '.join(told)}"


@dataclass(frozen=True)
class Row:
    """One near task searched with one seed. Latencies in milliseconds, all of the same turns.

    cold, near: trials until a search without, and with, neighbours held what is as fast as what
    the former held at its end; near is None where that never was. served_ms: of the default
    schedule and the nearest neighbour's, the faster. cold_ms, near_ms: at the end.
    """

    task: str
    distance: float
    seed: int
    cold: int
    near: int | None
    default_ms: float
    served_ms: float
    cold_ms: float
    near_ms: float

    def __str__(self) -> str:
        times = (self.default_ms, self.served_ms, self.cold_ms, self.near_ms)
        told = "".join(f"{ms:9.4f}" for ms in times)
        return f"{self.task[:30]:30}{self.distance:6.1f}{self.cold:6}{self.near or '-':>6}{told}"


def main() -> None:
    """Fill the registry, look at the new network, search its near tasks; print and write."""
    args = _arguments()
    target = searching.host(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        registry = args.registry or Path(folder) / "registry.db"
        budget = Budget(args.fill, per_task=args.trials, min_impact=args.min_impact)
        session = Session(target, registry, budget, seed=args.seed)
        networks = SMALL if args.small else VARIANTS
        for name in args.known:
            result = tune([_saved(name, networks, folder)], session, QuietReport())
            searching.tell(f"{name}: {result.trials} trials")
        planned = plan([_saved(args.new, networks, folder)], session, QuietReport())
        near = [row for row in planned.rows if row.status == "near"][: args.tasks]
        shares = _shares(planned)
        rows = _searched(near, target, registry, args)
    print(f"{args.new} after {', '.join(args.known)}: {shares}")
    _tell(rows, args.trials)
    if args.json:
        found = {"new": args.new, "known": args.known, "trials": args.trials, **asdict(shares)}
        found["rows"] = [asdict(row) for row in rows]
        args.json.write_text(json.dumps(found, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = searching.one_of(list(VARIANTS))
    parser.add_argument("--new", choices=list(VARIANTS), default="mobilenet_v2_075")
    parser.add_argument("--known", type=names, default=list(KNOWN), help=",".join(VARIANTS))
    parser.add_argument("--tasks", type=int, default=8, help="near tasks searched; default 8")
    parser.add_argument("--trials", type=int, default=64, help="a task; default 64")
    parser.add_argument("--fill", type=int, help="most trials of a known network; default all")
    parser.add_argument("--min-impact", type=float, default=0.01, help="default 0.01")
    parser.add_argument("--seeds", type=int, default=3, help="default 3")
    parser.add_argument("--seed", type=int, default=0, help="the first; default 0")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--registry", type=Path, help="kept, and filled where it is not")
    parser.add_argument("--small", action="store_true", help=f"small nets: {', '.join(SMALL)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    return parser.parse_args()


def _saved(name: str, networks: dict[str, Callable[[], onnx.ModelProto]], folder: str) -> Path:
    path = Path(folder) / f"{name}.onnx"
    onnx.save(networks[name](), path)
    return path


def _shares(planned: Plan) -> Shares:
    names = {"hit": "exact", "near": "near", "miss": "miss", "skip": "skipped"}
    of = {name: [r for r in planned.rows if r.status == status] for status, name in names.items()}
    return Shares(
        {name: len(rows) for name, rows in of.items()},
        {name: sum(row.impact for row in rows) for name, rows in of.items()},
    )


def _searched(
    near: Sequence[PlanRow], target: Target, path: Path, args: argparse.Namespace
) -> list[Row]:
    """Every near task under every seed, with and without neighbours, one after the other."""
    rows = []
    with Registry.open(path, write=False) as registry, Measurer(target) as measurer:
        for row in near:
            for seed in range(args.seed, args.seed + args.seeds):
                runs = [
                    searching.search(
                        _opener(registry, alone=alone),
                        row.task,
                        target,
                        measurer,
                        args.trials,
                        seed,
                    ).outcomes
                    for alone in (True, False)
                ]
                rows.append(_row(row, seed, runs, target, measurer))
                searching.tell(str(rows[-1]))
    return rows


def _opener(registry: Registry, *, alone: bool) -> searching.Opener:
    """Opens our search with a cost model of its own; alone: as if there were no neighbours."""

    def open_(task: Task, target: Target, known: Sequence[Measurement], seed: int) -> Search:
        kit = open_kit(registry, target, shipped_rules(target.kind), seed)
        if alone:
            kit.neighbours = lambda task: ()
        return open_search("ansor", task, known, kit)

    return open_


def _row(
    row: PlanRow,
    seed: int,
    runs: Sequence[Sequence[Outcome]],
    target: Target,
    measurer: Measurer,
) -> Row:
    default = dump(default_schedule(row.task.mod, target).trace)
    held = [_held(outcomes) for outcomes in runs]
    traces = dict.fromkeys(trace for run in held for moment in run for trace in moment)
    outcomes = measurer.contest(row.task, list(traces), default)
    ms = {outcome.trace: 1e3 * outcome.latency for outcome in outcomes}
    cold, near = ([min(ms[trace] for trace in moment) for moment in run] for run in held)
    goal = cold[-1] * (1 + AS_FAST)
    return Row(
        task=row.task.name,
        distance=row.neighbours[0].distance,
        seed=seed,
        cold=_reached(cold, goal) or len(cold),
        near=_reached(near, goal),
        default_ms=ms[default],
        served_ms=near[min(2, len(near)) - 1],
        cold_ms=cold[-1],
        near_ms=near[-1],
    )


def _held(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """After each trial, the traces that would run in turns: the default's and the best few."""
    default, *_ = outcomes
    return [
        [default.trace, *[o.trace for o in sorted(outcomes[:trials], key=_latency)[:KEEP]]]
        for trials in range(1, len(outcomes) + 1)
    ]


def _latency(outcome: Outcome) -> float:
    return outcome.latency


def _reached(times: Sequence[float], goal: float) -> int | None:
    """Trials until that latency; None where it never was."""
    return next((at for at, ms in enumerate(times, start=1) if ms <= goal), None)


def _tell(rows: Sequence[Row], trials: int) -> None:
    print(f"{'task':30}{'apart':>6}{'cold':>6}{'near':>6}" + f"{'default':>9}{'served':>9}", end="")
    print(f"{'cold ms':>9}{'near ms':>9}")
    for row in rows:
        print(row)
    if not rows:
        return
    cold = statistics.mean(row.cold for row in rows)
    near = statistics.mean(trials if row.near is None else row.near for row in rows)
    never = sum(row.near is None for row in rows)
    print(f"trials to what {trials} bring: {cold:.1f} cold, {near:.1f} near: {near / cold:.2f}")
    print(f"of {len(rows)} searches with neighbours {never} never got there")


if __name__ == "__main__":
    main()
