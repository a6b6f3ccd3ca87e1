"""What each part of the search is worth: the same search without it (the paper's figures 7, 10).

A subject is a case, or a network's heaviest tasks, or several of either joined by "+". All its
tasks are tuned together, with one cost model. The figures are their time after so many trials in
all: for networks weighted by the calls of tasks, for cases the geometric mean. The best single
timing of a search may be a lucky one; therefore the best few of each variant at each moment run in
turns at the end, and the best of each few counts, as at the end of a build. Variants:

    full               everything
    random             no fine-tuning: random programs, in the order drawn
    limited            the register tile alone, as in a hand-written template
    round-robin        no task scheduler: the tasks take turns, as cases always do
    no-crossover       every child has one parent
    warm               the cost model begins with what it has learnt from another network
    no-register-tile   without the rules that keep a tile of the output in vector registers
    no-register-tile-random, -no-crossover, -no-draft: both; the draft ranks unmeasured programs
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from ansor_deploy.measure.libraries import KEEP
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.tasks import Task
from ansor_deploy.request import Budget, Objective
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Guess
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.trace import dump
from ansor_deploy.target import Target
from ansor_deploy.tune.scheduler import BATCH, Scheduler, TaskProgress
from ansor_deploy.tune.search import open_search
from ansor_deploy.tune.search.context import SearchContext
from ansor_deploy.tune.search.cost_model import CostModel
from ansor_deploy.tune.search.evolution_options import EvolutionOptions
from benchmarks.options import progress
from benchmarks.search import searching
from benchmarks.search.cost_model import Program, measured_programs
from benchmarks.search.operators_te import CASES
from benchmarks.search.results import Bench, Found

HEAVIEST = 10  # tasks of each network
WARM_NETWORK = "squeezenet"  # the network that a warm cost model has learnt from
WARM_TASKS = 6  # of that network
WARM_PROGRAMS = 24  # of each of these tasks
MOMENTS = (0.25, 0.5, 1.0)  # shares of the trials, at which the state is kept
ENDLESS = Objective(patience=1 << 30)
FULL = EvolutionOptions()
RANDOM = EvolutionOptions(fresh=1.0, enough=sys.maxsize, programs=1)
NO_CROSSOVER = EvolutionOptions(crossed=0.0)
NO_DRAFT = EvolutionOptions(drafted=0.0)


class Ignorant(CostModel):
    """A cost model that learns nothing, so that programs stay in the order of drawing."""

    def update(self) -> bool:
        """Do nothing."""
        return False


@dataclass(frozen=True)
class Variant:
    """A variant. without: rules left out. options: of the evolution. learns: the cost model."""

    without: tuple[str, ...] = ()
    options: EvolutionOptions = FULL
    round_robin: bool = False
    warm: bool = False
    learns: bool = True


# Rules that a hand-written template lacks; and those that keep output tiles in registers.
BEYOND_TEMPLATES = (
    *("factored-tile", "multi-level-tiling", "multi-level-tiling-with-fusion"),
    *("reduction-factorisation", "row-fusion", "winograd"),
)
REGISTER_TILES = (
    "factored-tile",
    "register-tile",
    "row-tile",
    "strip-tile",
    "transposed",
    "winograd",
)
VARIANTS = {
    "full": Variant(),
    "random": Variant(options=RANDOM, learns=False),
    "limited": Variant(without=BEYOND_TEMPLATES),
    "round-robin": Variant(round_robin=True),
    "no-crossover": Variant(options=NO_CROSSOVER),
    "warm": Variant(warm=True),
    "no-register-tile": Variant(without=REGISTER_TILES),
    "no-register-tile-random": Variant(REGISTER_TILES, RANDOM, learns=False),
    "no-register-tile-no-crossover": Variant(REGISTER_TILES, NO_CROSSOVER),
    "no-register-tile-no-draft": Variant(REGISTER_TILES, NO_DRAFT),
}
FIGURE_7 = ("full", "random", "limited")


Held = dict[str, Sequence[str]]  # traces by workload: the best few of each task at one moment


def ablate(bench: Bench, subject: str, trials: int, variants: Sequence[str]) -> Found:
    """Milliseconds of a subject by variant, at each of the `MOMENTS` of its trials."""
    about = {"subject": subject, "trials": trials, "seed": bench.seed}

    def find() -> Found:
        tasks = _tasks(subject, bench.target)
        runs = {name: _moments(bench, subject, tasks, name, trials) for name in variants}
        seconds = _measured_again(bench, tasks, [held for run in runs.values() for held in run])

        def mean(held: Held) -> float:
            best = _best(held, tasks, seconds)
            if _of_cases(subject):
                return statistics.geometric_mean(best)
            return sum(task.weight * one for task, one in zip(tasks, best, strict=True))

        return {name: [1e3 * mean(held) for held in run] for name, run in runs.items()}

    return bench.results.once("ablation", {**about, "variants": list(variants)}, find)


def _moments(
    bench: Bench, subject: str, tasks: Sequence[Task], name: str, trials: int
) -> list[Held]:
    """The best traces of one variant at each of the moments."""

    def find() -> Found:
        variant = replace(VARIANTS[name], round_robin=_of_cases(subject) or name == "round-robin")
        known: list[Program] = []
        if variant.warm:  # programs of another network, from which its cost model learns first
            others = searching.network_tasks(WARM_NETWORK, bench.target, WARM_TASKS)
            known = measured_programs(bench, others, WARM_PROGRAMS)
        context = _context(variant, bench.target, known, bench.seed)
        run = _run(bench, tasks, variant, context, trials)
        progress(f"{subject}, {name}, seed {bench.seed}: {run[-1][0]} trials")
        return {"held": [_held(run, round(trials * part)) for part in MOMENTS]}

    about = {"subject": subject, "trials": trials, "seed": bench.seed, "variant": name}
    held: list[Held] = bench.results.once("variant", about, find)["held"]
    return held


def _of_cases(subject: str) -> bool:
    return set(subject.split("+")) <= set(CASES)


def _tasks(subject: str, target: Target) -> list[Task]:
    """The tasks of a subject; a task that several networks share occurs once."""
    found: dict[str, Task] = {}
    for name in subject.split("+"):
        operator = [searching.operator_task(name, target)] if name in CASES else []
        for task in operator or searching.network_tasks(name, target, HEAVIEST):
            known = found.get(task.key.workload)
            weight = task.weight + (known.weight if known else 0)
            found[task.key.workload] = replace(task, weight=weight)
    return list(found.values())


def _measured_again(
    bench: Bench, tasks: Sequence[Task], held: Sequence[Held]
) -> dict[tuple[str, str], float]:
    """Seconds of every winner, by workload and trace; those of a task are timed in turns."""
    seconds = {}
    for task in tasks:
        key = task.key.workload
        traces = list(dict.fromkeys(trace for one in held for trace in one[key]))
        found = bench.measurer.head_to_head(task, traces)
        seconds.update({(key, one.trace): one.latency for one in found})
    return seconds


def _best(held: Held, tasks: Sequence[Task], seconds: dict[tuple[str, str], float]) -> list[float]:
    """Seconds of the best held for each task; infinite where nothing ran."""
    keys = [task.key.workload for task in tasks]
    return [min((seconds[key, trace] for trace in held[key]), default=inf) for key in keys]


def _run(
    bench: Bench, tasks: Sequence[Task], variant: Variant, context: SearchContext, trials: int
) -> list[tuple[int, Held]]:
    """(trials, the best traces then) after each batch, once every task was measured."""
    budget = Budget(per_task=1 << 30, min_impact=0.0)
    states = [TaskProgress(task, task.roofline(bench.target)) for task in tasks]
    scheduler = Scheduler(states, budget, [0.0], ENDLESS, bench.seed)
    searches = {task.key.workload: open_search("ansor", task, [], context) for task in tasks}
    spent = 0
    curve: list[tuple[int, Held]] = []
    best: dict[str, tuple[Outcome, ...]] = {}
    while spent < trials and (state := _next(scheduler, variant)) is not None:
        task, key = state.task, state.task.key.workload
        count = min(BATCH, trials - spent)
        traces = searches[key].propose(count) if state.history else [_guess(task, context)]
        if not traces:
            state.ended = "exhausted"
            continue
        outcomes = bench.measurer.measure(task, traces, best=state.best)
        searches[key].observe(outcomes)
        state.observe(min(outcome.latency for outcome in outcomes), len(outcomes))
        spent += len(outcomes)
        right = [outcome for outcome in outcomes if not outcome.error]
        few = sorted([*best.get(key, ()), *right], key=lambda outcome: outcome.latency)[:KEEP]
        best[key] = tuple(few)
        if len(best) == len(tasks):
            curve.append((spent, {k: [one.trace for one in ones] for k, ones in best.items()}))
    return curve


def _guess(task: Task, context: SearchContext) -> str:
    """The guess of the variant's own rules: the default schedule, if it had no others."""
    sketch = derive(task.mod, context.target, context.rules).sketches[0]
    return dump(sketch.program(Guess()).sch.trace)


def _next(scheduler: Scheduler, variant: Variant) -> TaskProgress | None:
    """The task of the next batch: the scheduler's choice, or the one with the fewest batches."""
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
    for program in known:
        model.add(program.task, program.trace, program.latency, program.features)
    model.update()
    return SearchContext(target, rules, seed, model, options=variant.options)


def _held(run: Sequence[tuple[int, Held]], trials: int) -> Held:
    """The best traces after so many trials."""
    return [held for spent, held in run if spent <= trials][-1]
