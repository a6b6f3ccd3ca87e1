"""What each part of the search is worth: the same search without it.

    python benchmarks/ablation.py [--trials 64] [--seeds 3] [--only C1D,DEP,TBS]
                                  [--variants full,...] [--json FILE]

The chosen operators make a network, each of which counts by its latency. The numbers are the sum
of the best latencies after so many trials in all, as the median of several seeds. Variants:

    full               everything
    round-robin        no task scheduler: the operators take turns
    random             no fine-tuning: random programs, as they come
    limited            no cache stages, multi-level tiles, fused rows nor factored reductions
    no-crossover       every child has one parent
    no-register-tile   without the rule that keeps a tile of the output in vector registers
    cold               the cost model starts empty; in all others it knows two other operators
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any
from unittest.mock import patch

import searching
from cost_model import Program, measured_programs
from operators_te import OPERATORS

from ansor_deploy.measure.local import LocalMeasurer
from ansor_deploy.model.tasks import Task
from ansor_deploy.plan import Budget
from ansor_deploy.rule import shipped_rules
from ansor_deploy.search import evolution
from ansor_deploy.search.ansor import AnsorSearch
from ansor_deploy.search.cost_model import CostModel
from ansor_deploy.search.kit import SearchKit
from ansor_deploy.search.objectives import Latency
from ansor_deploy.search.scheduler import BATCH, Scheduler, Standing
from ansor_deploy.search.sketch import derive
from ansor_deploy.search.state import Guess
from ansor_deploy.search.trace import dump
from ansor_deploy.target import Target

TASKS = ("C1D", "DEP", "TBS")
WARM = ("GRP", "CAP")  # what a cost model that is not cold knows
WARM_PROGRAMS = 32  # of each
ENDLESS = Latency(patience=1 << 30)


class Ignorant(CostModel):
    """A cost model that learns nothing: programs come as they were drawn."""

    def update(self) -> bool:
        """Not done."""
        return False


@dataclass(frozen=True)
class Variant:
    """without: rules left out. constants: of the evolution, changed."""

    without: tuple[str, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)
    round_robin: bool = False
    warm: bool = True
    learns: bool = True


BEYOND_REGISTERS = (
    "add-cache-stage",
    "multi-level-tiling",
    "multi-level-tiling-with-fusion",
    "reduction-factorisation",
    "row-fusion",
)
VARIANTS = {
    "full": Variant(),
    "round-robin": Variant(round_robin=True),
    "random": Variant(constants={"FRESH": 1.0, "ENOUGH": float("inf")}, learns=False),
    "limited": Variant(without=BEYOND_REGISTERS),
    "no-crossover": Variant(constants={"CROSSED": 0.0}),
    "no-register-tile": Variant(without=("register-tile",)),
    "cold": Variant(warm=False),
}


@dataclass(frozen=True)
class Curve:
    """Median over the seeds, in milliseconds, after so many trials."""

    variant: str
    trials: tuple[int, ...]
    best_ms: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.variant:18}" + "".join(f"{value:10.4f}" for value in self.best_ms)


def main() -> None:
    """Run every chosen variant with every seed; print as they come."""
    parser = searching.options(__doc__, list(OPERATORS), TASKS, trials=64)
    parser.add_argument("--seeds", type=int, default=3, help="default 3")
    names = list(VARIANTS)
    choice = searching.one_of(names)
    parser.add_argument("--variants", type=choice, default=names, help=",".join(names))
    args = parser.parse_args()
    target = searching.host(args.threads)
    # From the first on, every operator has had its default schedule measured.
    grid = (*range(len(args.only), args.trials, BATCH), args.trials)
    curves: list[Curve] = []
    with LocalMeasurer(target) as measurer:
        tasks = [searching.operator_task(name, target) for name in args.only]
        known = _known(args, target, measurer)
        print(f"{'ms after trials':18}" + "".join(f"{trials:10d}" for trials in grid), flush=True)
        for name in args.variants:
            runs = []
            for seed in range(args.seed, args.seed + args.seeds):
                runs.append(_run(VARIANTS[name], tasks, target, measurer, known, args.trials, seed))
                searching.tell(f"{name}, seed {seed}: {runs[-1][-1][1] * 1e3:.4f} ms")
            best = tuple(statistics.median(_after(run, at) for run in runs) * 1e3 for at in grid)
            curves.append(Curve(name, grid, best))
            print(curves[-1], flush=True)
            if args.json:
                found = {"tasks": args.only, "curves": [asdict(curve) for curve in curves]}
                args.json.write_text(json.dumps(found, indent=2) + "\n")


def _known(args: Any, target: Target, measurer: LocalMeasurer) -> list[Program]:
    """Programs of other operators, for the cost models that are not cold."""
    if not any(VARIANTS[name].warm and VARIANTS[name].learns for name in args.variants):
        return []
    tasks = [searching.operator_task(name, target) for name in WARM]
    rng = random.Random(args.seed)  # noqa: S311 - no secret
    return list(measured_programs(tasks, target, measurer, WARM_PROGRAMS, rng))


def _run(
    variant: Variant,
    tasks: Sequence[Task],
    target: Target,
    measurer: LocalMeasurer,
    known: Sequence[Program],
    trials: int,
    seed: int,
) -> list[tuple[int, float]]:
    """Trials spent and the sum of the best latencies, seconds, after each batch."""
    kit = _kit(variant, target, known, seed)
    budget = Budget(per_task=1 << 30, min_impact=0.0)
    standings = [Standing(task, task.roofline(target)) for task in tasks]
    scheduler = Scheduler(standings, budget, [0.0], ENDLESS, seed)
    searches = {task.key.workload: AnsorSearch(task, [], kit) for task in tasks}
    spent, curve = 0, []
    with _changed(variant):
        while spent < trials and (standing := _next(scheduler, variant)) is not None:
            task = standing.task
            if not standing.history:
                traces = [_guess(task, kit)]
            else:
                traces = searches[task.key.workload].propose(min(BATCH, trials - spent))
            if not traces:
                standing.ended = "exhausted"
                continue
            outcomes = measurer.measure(task, traces, best=standing.best)
            searches[task.key.workload].observe(outcomes)
            standing.observe(min(outcome.latency for outcome in outcomes), len(outcomes))
            spent += len(outcomes)
            curve.append((spent, scheduler.end_to_end))
    return curve


def _guess(task: Task, kit: SearchKit) -> str:
    """What the variant's own rules think best: the default schedule, had it no others."""
    sketch = derive(task.mod, kit.target, kit.rules).sketches[0]
    return dump(sketch.program(Guess()).sch.trace)


def _next(scheduler: Scheduler, variant: Variant) -> Standing | None:
    """The task for the next batch: as scheduled, or the one with the fewest so far."""
    if not variant.round_robin:
        chosen = scheduler.next()
        return chosen[0] if chosen else None
    left = [standing for standing in scheduler.standings if not standing.ended]
    return min(left, key=lambda standing: len(standing.history), default=None)


def _kit(variant: Variant, target: Target, known: Sequence[Program], seed: int) -> SearchKit:
    rules = [rule for rule in shipped_rules(target.kind) if rule.name not in variant.without]
    model = CostModel() if variant.learns else Ignorant()
    for program in known if variant.warm else ():
        model.add(program.task, program.trace, program.latency, program.features)
    model.update()
    return SearchKit(target, rules, seed, model)


@contextmanager
def _changed(variant: Variant) -> Iterator[None]:
    """Meanwhile the evolution has the variant's constants."""
    with ExitStack() as stack:
        for name, value in variant.constants.items():
            stack.enter_context(patch.object(evolution, name, value))
        yield


def _after(curve: Sequence[tuple[int, float]], trials: int) -> float:
    """The sum after the last batch that ended by then."""
    return [latency for spent, latency in curve if spent <= trials][-1]


if __name__ == "__main__":
    main()
