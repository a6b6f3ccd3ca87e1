"""The way of a model through the tool, one function a command; nothing flows back upstream.

    load -> canonicalize -> import -> tasks -> plan -> tune -> compile -> verify -> write

Heavy modules are imported where they are used: an unchanged build needs none of them.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .artifact import outputs
from .artifact.files import output_paths, read_manifest
from .devices.machine import Place, cannot_run, check_buildable, open_place, runs_here
from .errors import AnsorError, DeviceError, UsageError
from .registry.store import Registry
from .report import Report
from .request import BuildResult, Request, TuneResult
from .system.interrupt import check
from .target import built_for
from .tune.known import adopt, note, read, with_indexes
from .tune.plan import Plan, make_plan

if TYPE_CHECKING:
    from .build.verify import Library, Verification
    from .model.prepare import Prepared
    from .space.explain import Explanation
    from .space.rule import Rule
    from .target import Target
    from .tune.revalidate import Retrial


def build(model: Path, output: Path, request: Request, report: Report) -> BuildResult:
    """Tune what is missing and matters, compile, verify, write `output` and its manifest.

    For a target whose code cannot run here, nothing is run: the records that there are, and
    default schedules, make the library. The manifest says so.
    A frozen build takes its records from the lock alone, and writes the same bytes everywhere.
    ModelError, DeviceError, MissingRecordError, RegistryError, VerificationError or AnsorError
    where that cannot be done; then nothing was written, and what was measured is in the registry.
    """
    if request.frozen:
        return _build_frozen(model, output, request, report)
    if not (runs := bool(request.devices) or runs_here(request.target)):
        request = _without_runs(request, report)
    request = with_indexes(request, report)
    result = _unchanged(model, output, request, report, runs=runs)
    result = result or _build_anew(model, output, request, report)
    if request.lock is not None:
        from .build.lock import write_used

        write_used(request.lock, result.manifest, request, report)
    return result


def _build_anew(model: Path, output: Path, request: Request, report: Report) -> BuildResult:
    from .build.assemble import assemble
    from .build.verify import Oracle

    outputs.check_writable(output)
    with open_place(request, report) as place, _registry(request) as registry:
        prepared = read([model], request, registry, report)
        # A model that the oracle refuses is not worth the tuning.
        oracle = Oracle(prepared[0].proto) if place else None
        planned = _plan(prepared, request, registry)
        report.plan(planned)
        tuned = _tune(planned, request, registry, report, place)
        check()
        manifest = assemble(prepared[0], oracle, place, output, request, registry, tuned, report)
    report.wrote(output_paths(output, manifest))
    return BuildResult(output, manifest, tuned)


def _build_frozen(model: Path, output: Path, request: Request, report: Report) -> BuildResult:
    """From the lock alone: no registry is read and nothing is measured."""
    if (result := _unchanged(model, output, request, report, runs=False)) is not None:
        return result
    from .build.assemble import assemble_frozen
    from .build.lock import check_complete
    from .build.lock import read as read_lock
    from .model.prepare import prepare

    outputs.check_writable(output)
    check_buildable(request.target)
    lock = read_lock(request)
    prepared = prepare(model, request.target, request.input_shapes, report.stage)
    check_complete(prepared, lock, request.lock)
    tasks = prepared.tasks
    hits = sum(task.key in lock.records for task in tasks)
    tuned = TuneResult(len(tasks), hits, 0, len(tasks) - hits, 0, 0.0, math.nan)
    manifest = assemble_frozen(prepared, lock, output, request, tuned, report)
    report.wrote(output_paths(output, manifest))
    return BuildResult(output, manifest, tuned)


def plan(models: list[Path], request: Request, report: Report) -> Plan:
    """What `build` or `tune` of these models would do; writes nothing."""
    from .model.prepare import prepare

    prepared = [prepare(m, request.target, request.input_shapes, report.stage) for m in models]
    with Registry.open(request.registry, write=False) as registry:
        if not request.layers:
            return _plan(prepared, request, registry)
        with registry.copy() as copy:
            note(prepared, with_indexes(request, report), copy, report)
            return _plan(prepared, request, copy)


def explain(
    model: Path,
    number: int | None,
    target: Target,
    input_shapes: dict[str, tuple[int, ...]],
    rules: Sequence[Rule],
    report: Report,
) -> tuple[int, list[Explanation]]:
    """How many tasks a model has, and what the rules make of each, or only of task `number`."""
    from .model.prepare import prepare
    from .space.explain import explain as explain_task

    tasks = prepare(model, target, input_shapes, report.stage).tasks
    if number is not None and number > len(tasks):
        raise UsageError(
            f"{model} has no task {number}: its tasks are 1 to {len(tasks)}",
            "leave --task out to see them all",
        )
    wanted = range(1, len(tasks) + 1) if number is None else (number,)
    return len(tasks), [explain_task(k, tasks[k - 1], target, rules) for k in wanted]


def tune(models: list[Path], request: Request, report: Report) -> TuneResult:
    """Fill the registry for these models without building. DeviceError if nothing can run them.

    What is known of their tasks afterwards goes into the request's lock, if it has one.
    """
    request = with_indexes(request, report)
    with _place_to_run(request, report) as place, _registry(request) as registry:
        planned = _plan(read(models, request, registry, report), request, registry)
        report.plan(planned)
        tuned = _tune(planned, request, registry, report, place)
        if request.lock is not None:
            from ._tvm import VERSION
            from .build.lock import write

            keys = [row.task.key for row in planned.rows]
            write(request.lock, keys, registry.best(keys, VERSION), request, report)
        return tuned


def revalidate(models: list[Path], request: Request, most: int, report: Report) -> list[Retrial]:
    """Try the best `most` records of each other version of TVM that these models' tasks have.

    DeviceError if nothing can run them.
    """
    from .model.prepare import merge
    from .tune.revalidate import revalidate_tasks

    request = with_indexes(request, report)
    with _place_to_run(request, report) as place, _registry(request) as registry:
        tasks = merge(read(models, request, registry, report))
        return revalidate_tasks(tasks, request, registry, report, place, most)


def rebuild(
    artifact: Path, model: Path, lock: Path, rules: tuple[Path, ...], report: Report
) -> dict[str, bool]:
    """Build a library anew in a temporary folder: of each output, whether it has the same bytes.

    AnsorError where it was not built from a lock, and what a frozen build raises.
    """
    manifest = read_manifest(artifact)
    if manifest["lock"] is None:
        raise AnsorError(
            "it was not built from a lock: measured times are in its manifest",
            f"build it so: ansor-deploy build {model} -o {artifact} --lock {lock} --frozen",
            artifact,
        )
    shapes = manifest["model"]["input_shapes"]
    request = Request(
        target=built_for(manifest),
        registry=Path(os.devnull),
        input_shapes={name: tuple(shape) for name, shape in shapes.items()},
        rules=rules,
        lock=lock,
        frozen=True,
        header=manifest["header"] is not None,
    )
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, artifact.name)
        made = output_paths(again, build(model, again, request, report).manifest)
        return {path.name: _equal(path, artifact.with_name(path.name)) for path in made}


@contextmanager
def opened(artifact: Path, device: str, report: Report) -> Iterator[Library]:
    """A built library, ready to be called on a device, or on this machine without one."""
    if not device:
        from .runtime.model import load

        yield load(artifact)
        return
    from .devices.board import open_device
    from .devices.model import load as load_there

    with closing(open_device(device, built_for(read_manifest(artifact)), report)) as site:
        yield load_there(site, artifact)


def verify(artifact: Path, model: Path, seed: int, device: str, report: Report) -> Verification:
    """Compare an artifact's outputs with ONNX Runtime's on the model, on seeded inputs.

    device: that runs the artifact; "" for this machine.
    UsageError if the artifact was not built from a model with these inputs and outputs.
    """
    from .build.verify import Oracle, verify_model
    from .model.bind import bind_shapes
    from .model.onnx_file import load

    with opened(artifact, device, report) as library:
        shapes = {info.name: info.shape for info in library.inputs}
        proto = load(model).proto
        _check_same_interface(artifact, model, library, proto)
        return verify_model(library, Oracle(bind_shapes(proto, shapes)), seed)


def bench(artifact: Path, seconds: float, device: str, report: Report) -> list[float]:
    """Run times of an artifact on seeded inputs, in seconds, one entry a run.

    device: that runs the artifact; "" for this machine.
    """
    from .build.verify import seeded_inputs

    with opened(artifact, device, report) as library:
        inputs = seeded_inputs(library.inputs, seed=0, upper=2)
        (warm,) = library.times(inputs, 1)
        runs = max(3, int(seconds / max(warm, 1e-6)))
        return library.times(inputs, min(runs, 100_000))


@contextmanager
def _place_to_run(request: Request, report: Report) -> Iterator[Place]:
    with open_place(request, report) as place:
        if place is None:
            raise DeviceError(
                cannot_run(request.target),
                "name a device that can: --device NAME; `build` and `plan` need none",
            )
        yield place


def _plan(prepared: list[Prepared], request: Request, registry: Registry) -> Plan:
    from ._tvm import VERSION
    from .model.prepare import merge

    names = [model.path.name for model in prepared]
    return make_plan(names, merge(prepared), registry, request, VERSION)


def _tune(
    planned: Plan, request: Request, registry: Registry, report: Report, place: Place | None
) -> TuneResult:
    from ._tvm import VERSION
    from .tune.queue import Tuned, tune_plan

    spent = tune_plan(planned, request, registry, report, place) if place else Tuned()
    records = registry.best([row.task.key for row in planned.rows], VERSION)
    rows = [
        replace(row, latency=records[row.task.key].latency) if row.task.key in records else row
        for row in planned.rows
    ]
    now = replace(planned, rows=tuple(rows))
    return TuneResult(
        tasks=len(planned.rows),
        hits=planned.count("hit"),
        misses=planned.count("miss") + planned.count("near"),
        skipped=planned.count("skip"),
        trials=spent.trials,
        tune_seconds=round(spent.seconds, 3),
        latency_ms=now.latency * 1e3,
        latencies_ms=tuple(latency * 1e3 for latency in now.latencies),
        rounds=spent.rounds,
    )


def _unchanged(
    model: Path, output: Path, request: Request, report: Report, *, runs: bool
) -> BuildResult | None:
    """What there is already, if a build would change nothing. runs: it would run the library."""
    from .artifact.depfile import input_files, write_depfile
    from .build.up_to_date import built_keys, current_manifest

    if (request.lock is not None or request.indexes) and not request.frozen:
        with _registry(request) as registry:
            adopt(request, registry, built_keys(output, request), report)
    manifest = current_manifest(model, output, request)
    if manifest is None or (runs and not manifest["ran_on"]):
        return None
    write_depfile(request.depfile, output, input_files(model, manifest, request.files))
    tasks = manifest["tasks"]
    hits = sum(task["record"] != "default" for task in tasks)
    told = manifest["speed"] or manifest["tuning"] or {"latency_ms": math.nan}
    tuned = TuneResult(len(tasks), hits, 0, len(tasks) - hits, 0, 0.0, told["latency_ms"])
    return BuildResult(output, manifest, tuned, up_to_date=True)


def _registry(request: Request) -> Registry:
    return Registry.open(request.registry, write=True)


def _without_runs(request: Request, report: Report) -> Request:
    """The request of a build that runs nothing. DeviceError where not even that can be built."""
    check_buildable(request.target)
    report.warn(f"{cannot_run(request.target)}: nothing is tuned, verified or timed")
    return replace(request, budget=replace(request.budget, trials=0))


def _check_same_interface(artifact: Path, model: Path, library: Any, proto: Any) -> None:
    from .model.bind import model_inputs

    takes = [value.name for value in model_inputs(proto)]
    gives = [value.name for value in proto.graph.output]
    if takes == [i.name for i in library.inputs] and gives == [o.name for o in library.outputs]:
        return
    raise UsageError(
        f"{artifact} was not built from {model}: the model's inputs are {takes} and its outputs "
        f"{gives}",
        f"build it: ansor-deploy build {model} -o {artifact}",
    )


def _equal(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()
