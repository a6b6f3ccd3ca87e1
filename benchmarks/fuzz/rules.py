"""Random unchanged programs of each rule in turn, as checked code (`bounds.py`).

Each aborts before it leaves a buffer, is run between guards, and is compared with the task's
program without a schedule.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ansor_deploy.errors import AnsorError
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.model.tasks import Task
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.sketch import Sketch
from ansor_deploy.space.trace import dump
from ansor_deploy.system.worker import WorkerFailure
from ansor_deploy.target import Target
from benchmarks.fuzz.conformance_cases import shipped_target
from benchmarks.fuzz.traces import court_of, programs_of_tests, tried
from benchmarks.options import crowd

BATCH = 5  # programs of a try, if the machine is fast enough
_ENOUGH = 10.0  # seconds after which a try begins no further program
_BUILDS = "benchmarks.fuzz.bounds"
_KIND = "llvm"


def attempt(payload: dict[str, Any]) -> dict[str, Any]:
    """Try a batch of the rule of {"seed"} for a {"target"} in a {"folder"}; as `traces.attempt`."""
    began = time.perf_counter()
    chance, folder = random.Random(payload["seed"]), Path(payload["folder"])
    target = replace(shipped_target(payload["target"]), cores=2)
    rules = shipped_rules(_KIND)
    rule = rules[payload["seed"] // 2 % len(rules)].name
    try:
        task, sketches = _task_with(rule, target, chance)
        court = court_of(task, target, folder, _BUILDS)
    except (AnsorError, WorkerFailure) as error:
        return {"end": "refused", "said": str(error), "seconds": time.perf_counter() - began}
    made = []
    for sketch, trace in _programs(sketches, chance):
        made.append(tried(court, f"{rule} by {sketch}", trace, folder))
        if time.perf_counter() - began > _ENOUGH * crowd():
            break
    return {"end": "done", "said": "", "traces": made, "seconds": time.perf_counter() - began}


def _programs(sketches: list[Sketch], chance: random.Random) -> Iterator[tuple[Sketch, str]]:
    for _ in range(BATCH):
        sketch = chance.choice(sketches)
        with suppress(ValueError, RuntimeError):  # decisions that do not fit
            yield sketch, dump(sketch.program(Random(chance)).sch.trace)


def _task_with(rule: str, target: Target, chance: random.Random) -> tuple[Task, list[Sketch]]:
    """A task of the tests' programs with sketches that use the rule, and these sketches."""
    programs = programs_of_tests("PROGRAMS") | programs_of_tests("DRAWN")
    for name in chance.sample(sorted(programs), len(programs)):
        task, sketches = _sketches(name, target)
        if found := [one for one in sketches if rule in {step.rule.name for step in one.path}]:
            return task, found
    raise AnsorError(f"no program has the rule {rule}")


@lru_cache(maxsize=512)
def _sketches(name: str, target: Target) -> tuple[Task, tuple[Sketch, ...]]:
    programs = programs_of_tests("PROGRAMS") | programs_of_tests("DRAWN")
    task = task_of(programs[name]()["main"], name.replace(" ", "_"), target)
    return task, tuple(derive(task.mod, target, shipped_rules(_KIND)).sketches)
