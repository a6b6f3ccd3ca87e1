"""How well the cost model ranks programs that it has not seen, measured as in the Ansor paper.

Random programs of ResNet-50's heaviest tasks are measured; four fifths train a new model, the rest
test it. A program's throughput is relative to the best of its task, 0 to 1. Pairs are of one task.
The paper trained with 20,000 programs and tested with 5,000.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ansor_deploy.model.tasks import Task
from ansor_deploy.tune.search.cost_model import CostModel
from ansor_deploy.tune.search.features import Extractor, decode, encode
from benchmarks.options import progress
from benchmarks.search import searching
from benchmarks.search.results import Bench, Found

NETWORK, TASKS = "resnet50", 12  # the number of its tasks, the heaviest
CHUNK = 32  # programs of a task that are measured and written down together
HELD_OUT = 0.2  # the share of programs that test the model


@dataclass(frozen=True)
class Program:
    """A measured program. throughput: the task's best latency over its own."""

    task: str
    trace: str
    latency: float
    features: np.ndarray
    throughput: float = 0.0


PAPER = {"trained": 20_000, "tested": 5_000, "rmse": 0.079, "r2": 0.958, "pairwise": 0.851}


def rank(bench: Bench, count: int) -> Found:
    """The quality of a model trained on programs, `count` in all or as many as there are."""

    def find() -> Found:
        tasks = searching.network_tasks(NETWORK, bench.target, TASKS)
        return evaluate(measured_programs(bench, tasks, -(-count // TASKS)), bench.seed)

    return bench.results.once("cost-model", {"programs": count, "seed": bench.seed}, find)


def evaluate(programs: Sequence[Program], seed: int) -> dict[str, float]:
    """Train a new model on some programs and test it on the others, with the figures of `PAPER`."""
    tested, trained = _split(programs, seed)
    model = CostModel()
    for program in trained:
        model.add(program.task, program.trace, program.latency, program.features)
    model.update()
    predicted = model.predict([program.features for program in tested])
    actual = np.array([program.throughput for program in tested])
    groups = [program.task for program in tested]
    error, spread = (predicted - actual) ** 2, (actual - actual.mean()) ** 2
    return {
        "trained": len(trained),
        "tested": len(tested),
        "rmse": float(np.sqrt(np.mean(error))),
        "r2": float(1 - np.sum(error) / np.sum(spread)),
        "pairwise": pairwise(predicted, actual, groups),
    }


def pairwise(predicted: np.ndarray, actual: np.ndarray, groups: Sequence[str]) -> float:
    """The share of pairs within a group that are ranked right; 0.5 without any pair."""
    right = total = 0
    for a, b in itertools.combinations(range(len(groups)), 2):
        if groups[a] == groups[b] and actual[a] != actual[b]:
            right += (predicted[a] > predicted[b]) == (actual[a] > actual[b])
            total += 1
    return right / total if total else 0.5


def measured_programs(bench: Bench, tasks: Sequence[Task], count: int) -> list[Program]:
    """Distinct random programs of each task that run; it can be resumed after each chunk."""
    return [program for task in tasks for program in _of(bench, task, count)]


def _of(bench: Bench, task: Task, count: int) -> list[Program]:
    """The programs of a task; fewer if there are no more."""
    found: dict[str, Any] = {}
    for number in range(-(-count // CHUNK)):
        about = {"task": task.key.workload, "chunk": number, "seed": bench.seed}
        chunk = bench.results.once(
            "programs", about, partial(_chunk, bench, task, list(found), number)
        )
        found.update(chunk)
        if not chunk:
            break
    whole = [(name, ms, _unpacked(rows)) for name, (ms, rows) in found.items() if ms is not None]
    ran = whole[:count]
    best = min((seconds for _, seconds, _ in ran), default=0.0)
    key = task.key.workload
    return [Program(key, name, one, rows, best / one) for name, one, rows in ran]


def _chunk(bench: Bench, task: Task, known: Collection[str], number: int) -> Found:
    """Seconds (None for a failure) and features of new programs, by digests of their traces."""
    rng = random.Random(f"{bench.seed} {task.key.workload} {number}")
    drawn = searching.drawn(task, bench.target, CHUNK, rng, lambda one: _digest(one) in known)
    outcomes = bench.measurer.measure(task, list(drawn))
    features = Extractor(bench.target)(list(drawn.values()))
    progress(f"{task.name}, chunk {number}: {len(drawn)} programs")
    return {
        _digest(one.trace): (None if one.error else one.latency, _packed(rows))
        for one, rows in zip(outcomes, features, strict=True)
        if rows is not None
    }


def _digest(trace: str) -> str:
    return hashlib.sha256(trace.encode()).hexdigest()[:16]


def _packed(features: np.ndarray) -> str:
    return base64.b64encode(encode(features)).decode()


def _unpacked(text: str) -> np.ndarray:
    if (features := decode(base64.b64decode(text))) is None:
        raise ValueError("a results file has features that are none")
    return features


def _split(programs: Sequence[Program], seed: int) -> tuple[list[Program], list[Program]]:
    """The programs to test with, and those to train with."""
    order = list(programs)
    random.Random(seed).shuffle(order)
    count = max(1, round(len(order) * HELD_OUT))
    return order[:count], order[count:]
