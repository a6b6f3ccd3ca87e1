"""How fast a large registry answers the queries of builds.

Fills a registry with 5,000 tasks of 50 families on 3 targets. Each record has its measurement, with
features; traces are real except for their random decisions.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from ansor_deploy.registry.coverage import coverage
from ansor_deploy.registry.history import history
from ansor_deploy.registry.record import Measurement, Provenance, Record, TaskKey, Workload
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.digest import canonical_json, sha256
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import Target, load_target
from ansor_deploy.tune.search.experience import experiences
from ansor_deploy.tune.search.features import decode, encode
from ansor_deploy.tune.search.neighbours import nearest
from benchmarks.options import json_option, number, save

REAL = Path(__file__).resolve().parents[2] / "tests" / "assets" / "kept" / "registry.db.gz"
TARGETS = ("cortex-a53", "intel-cpu-avx2", "intel-cpu-avx512")
WORKLOADS = 5000  # programs in the registry
LOOKUPS = 5000  # timed look-ups
PLANNED = 200  # tasks of a plan
CHUNK = 2000  # rows that are added at once
FAMILIES = 50  # of workloads
TVM = "0.27.0.post1"
MOMENT = "2026-11-20T12:00:00+00:00"
SHOWN = 10  # rows of a task's history
MADE = [("rule register-tile/0", True), ("register", (1, 7, 2, 32)), ("unroll", 1), ("order", 0)]
CONVOLUTION = """@T.prim_func(s_tir=True)
def main(v0: T.Buffer((1, 56, 56, 64), 'float32'), v1: T.Buffer((3, 3, 64, {out}), 'float32'), v2: T.Buffer((1, 56, 56, {out}), 'float32')):
    T.func_attr({{'tirx.noalias': True, 'kind': {kind}}})
    v3 = T.sblock_alloc_buffer((1, 58, 58, 64))
    for v4, v5, v6, v7 in T.grid(1, 58, 58, 64):
        with T.sblock('b0'):
            v8, v9, v10, v11 = T.axis.remap('SSSS', [v4, v5, v6, v7])
            T.reads(v0[v8, v9 - 1, v10 - 1, v11])
            T.writes(v3[v8, v9, v10, v11])
            v3[v8, v9, v10, v11] = T.if_then_else(1 <= v9 and v9 <= 56 and 1 <= v10 and v10 <= 56, v0[v8, v9 - 1, v10 - 1, v11], T.float32(0.0))
    for v12, v13, v14, v15, v16, v17, v18 in T.grid(1, 56, 56, {out}, 3, 3, 64):
        with T.sblock('b1'):
            v19, v20, v21, v22, v23, v24, v25 = T.axis.remap('SSSSRRR', [v12, v13, v14, v15, v16, v17, v18])
            T.reads(v3[v19, v20 + v23, v21 + v24, v25], v1[v23, v24, v25, v22])
            T.writes(v2[v19, v20, v21, v22])
            with T.init():
                v2[v19, v20, v21, v22] = T.float32(0.0)
            v2[v19, v20, v21, v22] = v2[v19, v20, v21, v22] + v3[v19, v20 + v23, v21 + v24, v25] * v1[v23, v24, v25, v22]
"""  # noqa: E501 - the script's statements must not be wrapped


def fill(path: Path, records: int, chance: random.Random) -> list[TaskKey]:
    """Fill the registry; return its keys."""
    models = real_measurements()
    targets = cpu_targets()
    workloads = [convolution(number) for number in range(WORKLOADS)]
    keys = [TaskKey(w.key, target.fingerprint) for w in workloads for target in targets]
    with Registry.open(path) as registry:
        _add_tasks(registry, workloads, targets)
        for start in range(0, records, CHUNK):
            numbers = range(start, min(start + CHUNK, records))
            found = [
                measured_like(keys[chance.randrange(len(keys))], models, chance) for _ in numbers
            ]
            registry.add_batch(found, [recorded(measurement) for measurement in found])
    return keys


def measure(
    path: Path, keys: list[TaskKey], records: int, chance: random.Random
) -> dict[str, float]:
    """Time a build's queries; goals: open below 50 ms, lookup below 2 ms, plan below 1 s.

    open_ms: median, for reading. lookup_p99_ms: for the best record of a task. plan_200_s: all
    queries of a plan of 200 tasks; near_200_s: for the neighbours of 200 unknown ones. relatives_s:
    for the measurements from which the search of an unknown task learns. query_s, stats_s, best_s
    (of a model of 60 tasks, on one target), show_s (of a task): for the commands. row_bytes: of a
    record with its measurement, including indexes.
    """
    opening = [_seconds(lambda: Registry.open(path, write=False).close()) for _ in range(21)]
    with Registry.open(path, write=False) as registry:
        asked = [keys[chance.randrange(len(keys))] for _ in range(LOOKUPS)]
        lookups = sorted(_seconds(partial(registry.best, [key], TVM)) for key in asked)
        planned, unknown = asked[:PLANNED], convolution(WORKLOADS)
        size = path.stat().st_size
        asks: dict[str, Callable[[], object]] = {
            "plan_200_s": lambda: _plan(registry, planned),
            "near_200_s": lambda: _near(registry, planned[0].target),
            "relatives_s": partial(experiences(registry, asked[0].target), unknown),
            "query_s": registry.query,
            "stats_s": registry.stats,
            "best_s": lambda: coverage(registry, "model-0", TARGETS[0]),
            "show_s": lambda: history(registry, planned[0].workload, "", SHOWN),
        }
        return {
            "records": records,
            "open_ms": statistics.median(opening) * 1e3,
            "lookup_p99_ms": lookups[len(lookups) * 99 // 100] * 1e3,
            **{name: _seconds(ask) for name, ask in asks.items()},
            "file_mb": size / 1e6,
            "row_bytes": size / records,
        }


@click.command
@number("--records", 100_000)
@number("--seed", 0)
@json_option
def command(records: int, seed: int, file: Path | None) -> None:
    """Fill, measure and print, and write with --json."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "registry.db"
        speed = measure(path, fill(path, records, chance), records, chance)
    print("\n".join(f"{name:14}{value:12,.4g}" for name, value in speed.items()))
    save(speed, file)


def real_measurements() -> list[Measurement]:
    """The measurements of a real registry, with traces and features of real programs."""
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder, "real.db")).write_bytes(gzip.decompress(REAL.read_bytes()))
        with Registry.open(path) as real:
            (fingerprint,) = [row["fingerprint"] for row in real.stats()["per_target"]]
            return [
                replace(found, features=encode(rows, MADE))
                for found in real.measurements(fingerprint)
                if (rows := decode(found.features or b"")) is not None
            ]


def cpu_targets() -> list[Target]:
    """The targets of the tasks."""
    return [load_target(name, [shipped("targets")]) for name in TARGETS]


def _plan(registry: Registry, keys: list[TaskKey]) -> None:
    registry.best(keys, TVM)
    for key in keys:
        registry.ends(key)
    registry.trials(keys)
    registry.seconds_per_trial(keys[0].target)


def _add_tasks(registry: Registry, workloads: list[Workload], targets: list[Target]) -> None:
    registry.add_workloads(workloads)
    for target in targets:
        registry.add_target(target)
        for model in range(WORKLOADS // 50):
            some = workloads[model * 50 : model * 50 + 60]  # neighbouring models share some tasks
            tasks = [(TaskKey(workload.key, target.fingerprint), 1) for workload in some]
            registry.add_model(sha256(f"model {model}"), f"model-{model}", tasks)


def _near(registry: Registry, fingerprint: str) -> None:
    """Look for neighbours of unknown tasks whose families the registry has."""
    target = next(one for one in cpu_targets() if one.fingerprint == fingerprint)
    workloads = [convolution(number) for number in range(WORKLOADS, WORKLOADS + PLANNED)]
    nearest({TaskKey(one.key, fingerprint): one for one in workloads}, registry, TVM, target)


def convolution(number: int) -> Workload:
    """A convolution; those of a family differ in their channels."""
    text = CONVOLUTION.format(kind=number % FAMILIES, out=8 * (1 + number // FAMILIES))
    shapes = ((1, 58, 58, 64), (64, 3, 3, number))
    family = sha256(f"family {number % FAMILIES}")
    names = sha256(text), text, "conv2d", f"conv2d_{number}", family
    return Workload(*names, shapes, ("float32",) * 2, 2e8, 1e6)


def measured_like(key: TaskKey, models: list[Measurement], chance: random.Random) -> Measurement:
    """A measurement for a key, with a changed trace of one of the models."""
    model = models[chance.randrange(len(models))]
    instructions, decisions = json.loads(model.trace)
    trace = canonical_json([instructions, _shuffled(decisions, chance)])
    seconds = tuple(1e-3 * (1 + chance.random()) for _ in range(3))
    device = f"board-{chance.randrange(8)}"
    provenance = replace(model.provenance, device=device, created=MOMENT, tvm=TVM)
    return Measurement(key, trace, seconds, "", "", provenance, model.features)


def _shuffled(decisions: list[list[object]], chance: random.Random) -> list[list[object]]:
    """The decisions with shuffled factors, so that each trace is new and still valid."""
    return [
        [place, chance.sample(made, len(made)) if isinstance(made, list) else made]
        for place, made in decisions
    ]


def recorded(measurement: Measurement) -> Record:
    """The record of a measurement."""
    proof = {"oracle": "default", "seed": 0, "max_abs_err": 1e-7, "max_rel_err": 2e-6}
    provenance: Provenance = measurement.provenance
    return Record(measurement.key, measurement.trace, measurement.seconds, proof, provenance)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
