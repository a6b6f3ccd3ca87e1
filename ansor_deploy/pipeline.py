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
from .plan import Plan, make_plan
from .registry.store import Registry
from .report import Report
from .request import BuildResult, Session, TuneResult
from .system.interrupt import check
from .target import built_for
from .tune.known import adopt, note, read, with_indexes

if TYPE_CHECKING:
    from .build.verify import Library, Verification
    from .model.prepare import Prepared
    from .space.explain import Explanation
    from .space.rule import Rule
    from .target import Target
    from .tune.revalidate import Retrial


def build(model: Path, output: Path, session: Session, report: Report) -> BuildResult:
    """Tune what is missing and matters, compile, verify, write `output` and its manifest.

    For a target whose code cannot run here, nothing is run: the records that there are, and
    default schedules, make the library. The manifest says so.
    A frozen build takes its records from the lock alone, and writes the same bytes everywhere.
    ModelError, DeviceError, MissingRecordError, RegistryError, VerificationError or AnsorError
    where that cannot be done; then nothing was written, and what was measured is in the registry.
    """
    if session.frozen:
        return _build_frozen(model, output, session, report)
    if not (runs := bool(session.devices) or runs_here(session.target)):
        session = _without_runs(session, report)
    session = with_indexes(session, report)
    result = _unchanged(model, output, session, report, runs=runs)
    result = result or _build_anew(model, output, session, report)
    if session.lock is not None:
        from .build.lock import write_used

        write_used(session.lock, result.manifest, session, report)
    return result


def _build_anew(model: Path, output: Path, session: Session, report: Report) -> BuildResult:
    from .build.assemble import assemble
    from .build.verify import Oracle

    outputs.check_writable(output)
    with open_place(session, report) as place, _registry(session) as registry:
        prepared = read([model], session, registry, report)
        # A model that the oracle refuses is not worth the tuning.
        oracle = Oracle(prepared[0].proto) if place else None
        planned = _plan(prepared, session, registry)
        report.plan(planned)
        tuned = _tune(planned, session, registry, report, place)
        check()
        manifest = assemble(prepared[0], oracle, place, output, session, registry, tuned, report)
    report.wrote(output_paths(output, manifest))
    return BuildResult(output, manifest, tuned)


def _build_frozen(model: Path, output: Path, session: Session, report: Report) -> BuildResult:
    """From the lock alone: no registry is read and nothing is measured."""
    if (result := _unchanged(model, output, session, report, runs=False)) is not None:
        return result
    from .build.assemble import assemble_frozen
    from .build.lock import check_complete
    from .build.lock import read as read_lock
    from .model.prepare import prepare

    outputs.check_writable(output)
    check_buildable(session.target)
    lock = read_lock(session)
    prepared = prepare(model, session.target, session.input_shapes, report)
    check_complete(prepared, lock, session.lock)
    tasks = prepared.tasks
    hits = sum(task.key in lock.records for task in tasks)
    tuned = TuneResult(len(tasks), hits, 0, len(tasks) - hits, 0, 0.0, math.nan)
    manifest = assemble_frozen(prepared, lock, output, session, tuned, report)
    report.wrote(output_paths(output, manifest))
    return BuildResult(output, manifest, tuned)


def plan(models: list[Path], session: Session, report: Report) -> Plan:
    """What `build` or `tune` of these models would do; writes nothing."""
    from .model.prepare import prepare

    prepared = [prepare(m, session.target, session.input_shapes, report) for m in models]
    with Registry.open(session.registry, write=False) as registry:
        if not session.layers:
            return _plan(prepared, session, registry)
        with registry.copy() as copy:
            note(prepared, with_indexes(session, report), copy, report)
            return _plan(prepared, session, copy)


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

    tasks = prepare(model, target, input_shapes, report).tasks
    if number is not None and number > len(tasks):
        raise UsageError(
            f"{model} has no task {number}: its tasks are 1 to {len(tasks)}",
            "leave --task out to see them all",
        )
    wanted = range(1, len(tasks) + 1) if number is None else (number,)
    return len(tasks), [explain_task(k, tasks[k - 1], target, rules) for k in wanted]


def tune(models: list[Path], session: Session, report: Report) -> TuneResult:
    """Fill the registry for these models without building. DeviceError if nothing can run them.

    What is known of their tasks afterwards goes into the session's lock, if it has one.
    """
    session = with_indexes(session, report)
    with _place_to_run(session, report) as place, _registry(session) as registry:
        planned = _plan(read(models, session, registry, report), session, registry)
        report.plan(planned)
        tuned = _tune(planned, session, registry, report, place)
        if session.lock is not None:
            from ._tvm import VERSION
            from .build.lock import write

            keys = [row.task.key for row in planned.rows]
            write(session.lock, keys, registry.best(keys, VERSION), session, report)
        return tuned


def revalidate(models: list[Path], session: Session, most: int, report: Report) -> list[Retrial]:
    """Try the best `most` records of each other version of TVM that these models' tasks have.

    DeviceError if nothing can run them.
    """
    from .model.prepare import merge
    from .tune.revalidate import revalidate_tasks

    session = with_indexes(session, report)
    with _place_to_run(session, report) as place, _registry(session) as registry:
        tasks = merge(read(models, session, registry, report))
        return revalidate_tasks(tasks, session, registry, report, place, most)


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
    session = Session(
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
        made = output_paths(again, build(model, again, session, report).manifest)
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
    from .model.onnx_file import bind_shapes, load

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
def _place_to_run(session: Session, report: Report) -> Iterator[Place]:
    with open_place(session, report) as place:
        if place is None:
            raise DeviceError(
                cannot_run(session.target),
                "name a device that can: --device NAME; `build` and `plan` need none",
            )
        yield place


def _plan(prepared: list[Prepared], session: Session, registry: Registry) -> Plan:
    from ._tvm import VERSION
    from .model.prepare import merge

    names = [model.path.name for model in prepared]
    return make_plan(names, merge(prepared), registry, session, VERSION)


def _tune(
    planned: Plan, session: Session, registry: Registry, report: Report, place: Place | None
) -> TuneResult:
    from ._tvm import VERSION
    from .tune.queue import Tuned, tune_plan

    spent = tune_plan(planned, session, registry, report, place) if place else Tuned()
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
    model: Path, output: Path, session: Session, report: Report, *, runs: bool
) -> BuildResult | None:
    """What there is already, if a build would change nothing. runs: it would run the library."""
    from .artifact.depfile import write_if_asked
    from .build.up_to_date import built_keys, current_manifest

    if (session.lock is not None or session.indexes) and not session.frozen:
        with _registry(session) as registry:
            adopt(session, registry, built_keys(output, session), report)
    manifest = current_manifest(model, output, session)
    if manifest is None or (runs and not manifest["ran_on"]):
        return None
    write_if_asked(model, output, manifest, session)
    tasks = manifest["tasks"]
    hits = sum(task["record"] != "default" for task in tasks)
    told = manifest["speed"] or manifest["tuning"] or {"latency_ms": math.nan}
    tuned = TuneResult(len(tasks), hits, 0, len(tasks) - hits, 0, 0.0, told["latency_ms"])
    return BuildResult(output, manifest, tuned, up_to_date=True)


def _registry(session: Session) -> Registry:
    return Registry.open(session.registry, write=True)


def _without_runs(session: Session, report: Report) -> Session:
    """The session of a build that runs nothing. DeviceError where not even that can be built."""
    check_buildable(session.target)
    report.warn(f"{cannot_run(session.target)}: nothing is tuned, verified or timed")
    return replace(session, budget=replace(session.budget, trials=0))


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
