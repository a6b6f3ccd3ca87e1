"""What each part of the search is worth: the same search without it.

    python benchmarks/ablation.py [--network mobilenet_v2] [--tasks 10] [--trials 160]
                                  [--seeds 3] [--variants full,...] [--json FILE]
    python benchmarks/ablation.py --operators TBS-1-b1,C2D-3-b1,CAP-1-b1 --trials 384 \
                                  --variants no-register-tile,no-register-tile-random

The heaviest tasks of a network are tuned together. The numbers are the network's time in these
tasks after so many trials in all, as the median of several seeds. Of operators, which take turns,
they are the geometric mean of their times. Single timings of a search are
lucky ones; therefore the few that any search held best at any of these moments are measured anew
at the end, all in turns, and the best of each few counts, as when a build settles. Variants:

    full               everything
    round-robin        no task scheduler: the tasks take turns
    random             no fine-tuning: random programs, as they come
    limited            no cache stages, multi-level tiles, fused rows nor factored reductions
    no-crossover       every child has one parent
    cold               the cost model starts empty; in all others it knows another network
    no-register-tile   without the rule that keeps a tile of the output in vector registers
    no-register-tile-random, -no-crossover, -cold, -cold-no-crossover: all of it
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ansor_deploy.measure.libraries import KEEP
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.tasks import Task
from ansor_deploy.objectives import Objective
from ansor_deploy.request import Budget
from ansor_deploy.search import open_search
from ansor_deploy.search.context import SearchContext
from ansor_deploy.search.cost_model import CostModel
from ansor_deploy.search.options import EvolutionOptions
from ansor_deploy.space.question import Guess
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.sketch import derive
from ansor_deploy.space.trace import dump
from ansor_deploy.target import Target
from ansor_deploy.tune.scheduler import BATCH, Scheduler, TaskProgress
from benchmarks import searching, zoo
from benchmarks.cost_model import Program, measured_programs
from benchmarks.operators_te import CASES

WARM_NETWORK = "squeezenet"  # what a cost model that is not cold knows of
WARM_TASKS, WARM_PROGRAMS = 6, 24
TURNS = 3  # measurements of each winner at the end
Mean = Callable[[Sequence[float]], float]
ENDLESS = Objective(patience=1 << 30)
FULL = EvolutionOptions()
RANDOM = EvolutionOptions(fresh=1.0, enough=sys.maxsize)
NO_CROSSOVER = EvolutionOptions(crossed=0.0)


class Ignorant(CostModel):
    """A cost model that learns nothing: programs come as they were drawn."""

    def update(self) -> bool:
        """Not done."""
        return False


@dataclass(frozen=True)
class Variant:
    """without: rules left out. options: of the evolution. learns: whether the cost model does."""

    without: tuple[str, ...] = ()
    options: EvolutionOptions = FULL
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
    "random": Variant(options=RANDOM, learns=False),
    "limited": Variant(without=BEYOND_REGISTERS),
    "no-crossover": Variant(options=NO_CROSSOVER),
    "cold": Variant(warm=False),
    "no-register-tile": Variant(without=("register-tile",)),
    "no-register-tile-random": Variant(("register-tile",), RANDOM, learns=False),
    "no-register-tile-no-crossover": Variant(("register-tile",), NO_CROSSOVER),
    "no-register-tile-cold": Variant(("register-tile",), warm=False),
    "no-register-tile-cold-no-crossover": Variant(("register-tile",), NO_CROSSOVER, warm=False),
}


@dataclass(frozen=True)
class Winners:
    """What one search held best of each task after so many trials: traces by workload."""

    trials: int
    traces: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Curve:
    """Milliseconds after so many trials, the median over the seeds; and each seed's last."""

    variant: str
    trials: tuple[int, ...]
    best_ms: tuple[float, ...]
    last_ms: tuple[float, ...]

    def __str__(self) -> str:
        medians = "".join(f"{value:9.4f}" for value in self.best_ms)
        return f"{self.variant:30}{medians}   {min(self.last_ms):.4f}-{max(self.last_ms):.4f}"


def main() -> None:
    """Run every chosen variant with every seed, the variants in turns; print at the end."""
    args = _arguments()
    target = searching.host(args.threads)
    grid = tuple(round(args.trials * part) for part in (0.25, 0.5, 1.0))
    runs: dict[str, list[list[Winners]]] = {name: [] for name in args.variants}
    with Measurer(target) as measurer:
        tasks = _tasks(args, target)
        known = _known(args, target, measurer)
        for seed in range(args.seed, args.seed + args.seeds):
            for name in args.variants:
                variant = VARIANTS[name]
                if args.operators:
                    variant = replace(variant, round_robin=True)
                run = _run(variant, tasks, target, measurer, known, args.trials, seed)
                runs[name].append([_held(run, at) for at in grid])
                searching.progress(f"{name}, seed {seed}: {run[-1].trials} trials")
        seconds = _measured_again(tasks, runs, measurer)
    mean = statistics.geometric_mean if args.operators else _weighted_sum(tasks)
    what = ",".join(args.operators) or args.network
    print(f"{what}, ms after trials".ljust(30) + "".join(f"{at:9d}" for at in grid))
    curves = [_curve(name, grid, runs[name], tasks, seconds, mean) for name in args.variants]
    for curve in curves:
        print(curve)
    if args.json:
        found = {"tasks": [task.name for task in tasks], "curves": [asdict(c) for c in curves]}
        args.json.write_text(json.dumps(found, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = list(VARIANTS)
    parser.add_argument("--network", choices=list(zoo.NETWORKS), default="mobilenet_v2")
    ops = searching.one_of(list(CASES))
    parser.add_argument("--operators", type=ops, default=[], help="instead of a network's tasks")
    parser.add_argument("--tasks", type=int, default=10, help="the heaviest; default 10")
    parser.add_argument("--trials", type=int, default=160, help="of all tasks; default 160")
    parser.add_argument("--seeds", type=int, default=3, help="default 3")
    parser.add_argument("--seed", type=int, default=0, help="the first; default 0")
    choice = searching.one_of(names)
    parser.add_argument("--variants", type=choice, default=names, help=",".join(names))
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    return parser.parse_args()


def _tasks(args: Any, target: Target) -> list[Task]:
    if args.operators:
        return [searching.operator_task(name, target) for name in args.operators]
    return searching.network_tasks(args.network, target, args.tasks)


def _known(args: Any, target: Target, measurer: Measurer) -> list[Program]:
    """Programs of another network, for the cost models that are not cold."""
    if not any(VARIANTS[name].warm and VARIANTS[name].learns for name in args.variants):
        return []
    tasks = searching.network_tasks(WARM_NETWORK, target, WARM_TASKS)
    rng = random.Random(args.seed)
    return list(measured_programs(tasks, target, measurer, WARM_PROGRAMS, rng))


def _measured_again(
    tasks: Sequence[Task], runs: dict[str, list[list[Winners]]], measurer: Measurer
) -> dict[tuple[str, str], float]:
    """Seconds of every winner, by workload and trace; all of a task in turns."""
    seconds = {}
    held = [winners for found in runs.values() for run in found for winners in run]
    for task in tasks:
        key = task.key.workload
        traces = list(dict.fromkeys(trace for winners in held for trace in winners.traces[key]))
        times: dict[str, list[float]] = {trace: [] for trace in traces}
        for _ in range(TURNS):
            for outcome in measurer.measure(task, traces):
                times[outcome.trace].append(outcome.latency)
        seconds.update({(key, trace): statistics.median(times[trace]) for trace in traces})
        searching.progress(f"{task.name}: {len(traces)} winners measured again")
    return seconds


def _weighted_sum(tasks: Sequence[Task]) -> Mean:
    def total(seconds: Sequence[float]) -> float:
        return sum(t.weight * one for t, one in zip(tasks, seconds, strict=True))

    return total


def _curve(
    name: str,
    grid: tuple[int, ...],
    runs: Sequence[Sequence[Winners]],
    tasks: Sequence[Task],
    seconds: dict[tuple[str, str], float],
    mean: Mean,
) -> Curve:
    keys = [task.key.workload for task in tasks]

    def best(held: Winners, key: str) -> float:
        return min(seconds[key, trace] for trace in held.traces[key])

    times = [[1e3 * mean([best(held, key) for key in keys]) for held in run] for run in runs]
    medians = tuple(statistics.median(column) for column in zip(*times, strict=True))
    return Curve(name, grid, medians, tuple(run[-1] for run in times))


def _run(
    variant: Variant,
    tasks: Sequence[Task],
    target: Target,
    measurer: Measurer,
    known: Sequence[Program],
    trials: int,
    seed: int,
) -> list[Winners]:
    """What was best of every task, after each batch once every task has been looked at."""
    context = _context(variant, target, known, seed)
    budget = Budget(per_task=1 << 30, min_impact=0.0)
    states = [TaskProgress(task, task.roofline(target)) for task in tasks]
    scheduler = Scheduler(states, budget, [0.0], ENDLESS, seed)
    searches = {task.key.workload: open_search("ansor", task, [], context) for task in tasks}
    spent, curve = 0, []
    best: dict[str, tuple[Outcome, ...]] = {}
    while spent < trials and (state := _next(scheduler, variant)) is not None:
        task = state.task
        if not state.history:
            traces = [_guess(task, context)]
        else:
            traces = searches[task.key.workload].propose(min(BATCH, trials - spent))
        if not traces:
            state.ended = "exhausted"
            continue
        outcomes = measurer.measure(task, traces, best=state.best)
        searches[task.key.workload].observe(outcomes)
        state.observe(min(outcome.latency for outcome in outcomes), len(outcomes))
        spent += len(outcomes)
        key = task.key.workload
        right = [outcome for outcome in outcomes if not outcome.error]
        few = sorted([*best.get(key, ()), *right], key=lambda outcome: outcome.latency)[:KEEP]
        best[key] = tuple(few)
        if len(best) == len(tasks):
            held = {k: tuple(one.trace for one in ones) for k, ones in best.items()}
            curve.append(Winners(spent, held))
    return curve


def _guess(task: Task, context: SearchContext) -> str:
    """What the variant's own rules think best: the default schedule, had it no others."""
    sketch = derive(task.mod, context.target, context.rules).sketches[0]
    return dump(sketch.program(Guess()).sch.trace)


def _next(scheduler: Scheduler, variant: Variant) -> TaskProgress | None:
    """The task for the next batch: as scheduled, or the one with the fewest so far."""
    if not variant.round_robin:
        chosen = scheduler.next()
        return chosen[0] if chosen else None
    left = [state for state in scheduler.states if not state.ended]
    return min(left, key=lambda state: len(state.history), default=None)


def _context(
    variant: Variant, target: Target, known: Sequence[Program], seed: int
) -> SearchContext:
    rules = [rule for rule in shipped_rules(target.kind) if rule.name not in variant.without]
    model = CostModel() if variant.learns else Ignorant()
    for program in known if variant.warm else ():
        model.add(program.task, program.trace, program.latency, program.features)
    model.update()
    return SearchContext(target, rules, seed, model, options=variant.options)


def _held(run: Sequence[Winners], trials: int) -> Winners:
    """What was best when so many trials were spent."""
    return [winners for winners in run if winners.trials <= trials][-1]


if __name__ == "__main__":
    main()
