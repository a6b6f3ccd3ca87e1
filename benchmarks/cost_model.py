"""How well the cost model ranks programs that it has not seen, as the Ansor paper asks it.

    python benchmarks/cost_model.py [--tasks 12] [--programs 40] [--seed N] [--json FILE]

Random programs of ResNet-50's heaviest tasks are measured; four fifths teach a new model, the
rest test it. A program's throughput is relative to the best of its task, 0 to 1. Pairs are of one
task; recall@30 is of the whole test set. The paper learnt from 20,000 programs and tested with
5,000; the chance of a recall by guessing, 30 over the programs tested, stands beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.tasks import Task
from ansor_deploy.search.cost_model import CostModel
from ansor_deploy.search.features import Extractor
from ansor_deploy.space.question import Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.sketch import derive
from ansor_deploy.space.trace import dump
from ansor_deploy.target import Target
from benchmarks import searching

HELD_OUT = 0.2
RECALLED = 30
FAILURES = 5  # random decisions that may not fit, for each program wanted


@dataclass(frozen=True)
class Program:
    """A measured program. throughput: the task's best latency over its own."""

    task: str
    trace: str
    latency: float
    features: np.ndarray
    throughput: float = 0.0


@dataclass(frozen=True)
class Quality:
    """Of predictions. chance: the recall that guessing would have."""

    trained: int
    tested: int
    rmse: float
    r2: float
    pairwise: float
    recall: float
    chance: float


PAPER = Quality(20_000, 5_000, 0.079, 0.958, 0.851, 0.624, 0.006)


def main() -> None:
    """Measure, train, test; print beside the paper's."""
    args = _arguments()
    target = searching.host(args.threads)
    tasks = searching.network_tasks("resnet50", target, args.tasks)
    rng = random.Random(args.seed)
    with Measurer(target) as measurer:
        programs = list(measured_programs(tasks, target, measurer, args.programs, rng))
    found = evaluate(programs, args.seed)
    print(f"{'':12}" + "".join(f"{name:>10}" for name in asdict(found)))
    for name, quality in (("here", found), ("Ansor paper", PAPER)):
        print(f"{name:12}" + "".join(f"{value:10.4g}" for value in asdict(quality).values()))
    if args.json:
        answer = {"here": asdict(found), "paper": asdict(PAPER)}
        args.json.write_text(json.dumps(answer, indent=2) + "\n")


def evaluate(programs: Sequence[Program], seed: int) -> Quality:
    """Train a new model on some of the programs and test it on the others."""
    tested, trained = _split(programs, seed)
    model = CostModel()
    for program in trained:
        model.add(program.task, program.trace, program.latency, program.features)
    model.update()
    predicted = model.predict([program.features for program in tested])
    actual = np.array([program.throughput for program in tested])
    groups = [program.task for program in tested]
    return Quality(
        trained=len(trained),
        tested=len(tested),
        rmse=float(np.sqrt(np.mean((predicted - actual) ** 2))),
        r2=float(1 - np.sum((predicted - actual) ** 2) / np.sum((actual - actual.mean()) ** 2)),
        pairwise=pairwise(predicted, actual, groups),
        recall=recall(predicted, actual),
        chance=min(RECALLED, len(tested)) / len(tested),
    )


def pairwise(predicted: np.ndarray, actual: np.ndarray, groups: Sequence[str]) -> float:
    """Share of the pairs of one group whose order is predicted right; 0.5 without any pair."""
    right = total = 0
    for a, b in itertools.combinations(range(len(groups)), 2):
        if groups[a] == groups[b] and actual[a] != actual[b]:
            right += (predicted[a] > predicted[b]) == (actual[a] > actual[b])
            total += 1
    return right / total if total else 0.5


def recall(predicted: np.ndarray, actual: np.ndarray, count: int = RECALLED) -> float:
    """Share of the `count` best that are among the `count` predicted best."""
    count = min(count, len(actual))
    best, chosen = (set(np.argsort(-values)[:count]) for values in (actual, predicted))
    return len(best & chosen) / count


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=12, help="the heaviest; default 12")
    parser.add_argument("--programs", type=int, default=40, help="measured a task; default 40")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    return parser.parse_args()


def measured_programs(
    tasks: Sequence[Task], target: Target, measurer: Measurer, count: int, rng: random.Random
) -> Iterator[Program]:
    """Distinct random programs of each task, without those that fail."""
    extract = Extractor(target)
    for number, task in enumerate(tasks, 1):
        drawn = _drawn(task, target, count, rng)
        outcomes = measurer.measure(task, list(drawn))
        features = extract(list(drawn.values()))
        pairs = [
            (outcome, rows)
            for outcome, rows in zip(outcomes, features, strict=True)
            if rows is not None and not outcome.error
        ]
        searching.progress(f"{number}/{len(tasks)} {task.name}: {len(pairs)} programs")
        best = min((outcome.latency for outcome, _ in pairs), default=0.0)
        for outcome, rows in pairs:
            throughput = best / outcome.latency
            yield Program(task.key.workload, outcome.trace, outcome.latency, rows, throughput)


def _drawn(task: Task, target: Target, count: int, rng: random.Random) -> dict[str, Any]:
    """Schedules of distinct random programs by their traces; fewer if there are no more."""
    sketches = derive(task.mod, target, shipped_rules(target.kind)).sketches
    drawn: dict[str, Any] = {}
    for _ in range(count * FAILURES):
        if len(drawn) == count or not sketches:
            break
        try:
            sch = rng.choice(sketches).program(Random(rng)).sch
        except (RuntimeError, ValueError):  # TVM refuses these decisions
            continue
        drawn.setdefault(dump(sch.trace), sch)
    return drawn


def _split(programs: Sequence[Program], seed: int) -> tuple[list[Program], list[Program]]:
    """Those that test, and those that teach."""
    order = list(programs)
    random.Random(seed).shuffle(order)
    count = max(1, round(len(order) * HELD_OUT))
    return order[:count], order[count:]


if __name__ == "__main__":
    main()
