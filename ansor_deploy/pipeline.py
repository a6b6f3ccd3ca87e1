"""The way of a model through the tool, one function a command; nothing flows back upstream.

    read -> prove -> plan -> tune -> ship: compile, describe, try, race, commit

Heavy modules are imported where they are used: an unchanged build needs none of them, and a model
that is refused no TVM.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .devices.machine import check_buildable, runs_here
from .errors import AnsorError, VerificationError
from .registry.layers import indexes
from .registry.store import Registry
from .request import Outputs, Request, Tolerance
from .ship.lock import (
    check_complete,
    check_possible,
    is_same,
    lock_of,
    on_its_host,
    warn_of_another_host,
    write_entries,
    write_used,
)
from .ship.manifest import output_paths, read_manifest
from .ship.outputs.commit import check_writable, commit
from .ship.outputs.depfile import input_files, write_depfile
from .ship.result import BuildResult, finished_build
from .ship.up_to_date import built_keys, current_manifest, has_same_records
from .system.interrupt import check
from .tune import intake
from .tune.ledger import Ledger
from .tune.plan import Plan, plan_models
from .tune.result import TuneResult
from .tune.workspace import Workspace, nowhere, open_workspace, with_devices, without_runs

if TYPE_CHECKING:
    from .model.prepare import Prepared
    from .ship.manifest import Draft, Manifest
    from .ship.shipment import Shipment
    from .tune.pack_files import Packed
    from .tune.sources.past import Retrial
    from .views import Report

    Layers = tuple[Path, ...]  # registries of what is in them now


def build(model: Path, outputs: Outputs, request: Request, report: Report) -> BuildResult:
    """Tune what is missing and matters, compile, verify, write the library and its manifest.

    For a target that cannot run here, the records that there are, and default schedules,
    make the library, and a stand-in of it is verified. The manifest says so.
    A frozen build takes its records from the lock alone, and writes the same bytes everywhere.
    ModelError, DeviceError, MissingRecordError, RegistryError, VerificationError or AnsorError
    where that cannot be done; then nothing was written, and what was measured is in the registry.
    """
    if request.frozen:
        return _build_frozen(model, outputs, request, report)
    request = with_devices(request, report)
    if not (runs := bool(request.devices) or runs_here(request.target)):
        request = without_runs(request, report)
    layers = indexes(request.layers, report.warn)
    result = _unchanged(model, outputs, request, layers, report, runs=runs)
    return result or _build_anew(model, outputs, request, layers, report)


def _build_anew(
    model: Path, outputs: Outputs, request: Request, layers: Layers, report: Report
) -> BuildResult:
    check_writable(outputs.library)
    with open_workspace(request, layers, report) as work:
        prepared = intake.read([model], work)
        from .model.prepare import merge
        from .ship.memory_limits import check_limits
        from .ship.shipment import Shipment
        from .ship.verify.oracle import Oracle
        from .tune.queue import tune_missing
        from .tune.sources.claims import prove

        # A model that the oracle refuses is not worth the tuning.
        oracles = [Oracle(proto) for proto in prepared[0].protos] if request.verify else []
        prove(merge(prepared), work)
        planned = plan_models(prepared, work.ledger)
        check_limits(planned.memory[0], request.limits, model, work.machine)
        report.plan(planned)
        tuned = tune_missing(planned, work)
        check()
        others = [Shipment.of_ledger(one, outputs, at) for one, at in intake.others(model, work)]
        made = Shipment.of_ledger(prepared[0], outputs, work, tuned.records)
        manifest = _ship(replace(made, oracles=oracles, others=tuple(others)), tuned)
        if request.lock is not None:
            write_used(manifest, work.ledger, report)
        done = finished_build(manifest, planned, tuned.trials, outputs, request)
        work.registry.add_build(done)
    return BuildResult(outputs.library, manifest, tuned)


def _build_frozen(model: Path, outputs: Outputs, request: Request, report: Report) -> BuildResult:
    """From the lock alone: no registry is read and nothing is measured."""
    asked, request = request, on_its_host(request)
    manifest = current_manifest(model, outputs, request)
    if manifest is not None and is_same(manifest, request):
        return _kept(model, outputs, manifest, request)
    from .model.prepare import prepare

    warn_of_another_host(asked, request, report)
    check_writable(outputs.library)
    check_buildable(request.target)
    lock = lock_of(request)
    prepared = prepare(model, request.target, request.input_shapes, report.stage, report.step)
    from .ship.shipment import Shipment

    check_complete(prepared, lock, request.lock, request.remake)
    check_possible(prepared.tasks, lock, request)
    tasks = prepared.tasks
    tuned = TuneResult.untuned(len(tasks), sum(task.key in lock.records for task in tasks))
    manifest = _ship(Shipment.of_lock(prepared, outputs, lock, request, report), tuned)
    return BuildResult(outputs.library, manifest, tuned)


def _ship(made: Shipment, tuned: TuneResult) -> Manifest:
    """Compile, describe, try, race and commit. VerificationError writes nothing.

    Where numbers are off and tasks were rewritten, at worst without: they round otherwise then, and
    make NaN of an infinity in more places.
    """
    from .ship.compile import compiled
    from .ship.describe import describe
    from .ship.race.raced import raced
    from .ship.verify.tried import tried, tried_on

    if made.machine is not None:
        made.machine.start()
    try:
        with compiled(made) as (path, codes):
            draft = describe(made, tuned, codes)
            if made.machine is None:
                draft = tried(made, path, draft)
            else:
                library = made.machine.load(path, draft.to_json())
                draft = tried_on(made, draft, library, made.machine)
                draft = raced(made, path, draft, library, made.machine)
            return _commit(made, path, draft)
    except VerificationError as error:
        if made.strict or not made.rewritten:
            raise
        made.report.warn(f"{error.text}: it is built anew as --precision strict would")
    return _ship(made.strictly(), tuned)


def _commit(made: Shipment, path: Path, draft: Draft) -> Manifest:
    """Put all outputs in place: the depfile before the manifest, which no output lacks then."""
    outputs = made.outputs
    depend = partial(_depend, made.model.path, outputs, draft, made.request)
    manifest = commit(path, outputs.library, draft, header=outputs.header, before=depend)
    made.report.memory(manifest.memory)
    made.report.wrote(output_paths(outputs.library, header=outputs.header))
    return manifest


def _depend(model: Path, outputs: Outputs, manifest: Draft, request: Request) -> None:
    inputs = input_files(model, manifest, request.files)
    write_depfile(outputs.depfile, outputs.library, inputs)


def plan(models: list[Path], request: Request, report: Report) -> Plan:
    """What `build` or `tune` of these models would do; writes nothing and asks no device."""
    from .model.prepare import prepare

    request = with_devices(request, report)
    if not (request.devices or runs_here(request.target)):
        report.warn(nowhere(request))
    words = (request.target, request.input_shapes, report.stage, report.step)
    prepared = [prepare(model, *words) for model in models]
    with Registry.open(request.registry, write=False) as registry:
        if not request.layers:
            return plan_models(prepared, Ledger(registry, request))
        with registry.copy() as copy:
            work = Workspace(request, report, copy, indexes(request.layers, report.warn))
            intake.note(prepared, work)
            return plan_models(prepared, work.ledger)


def rebuild(
    artifact: Path, model: Path, lock: Path, rules: tuple[Path, ...], report: Report
) -> dict[str, bool]:
    """Build a library anew in a temporary folder: of each output, whether it has the same bytes.

    AnsorError where it was not built from a lock, and what a frozen build raises.
    """
    manifest = read_manifest(artifact)
    if manifest.lock is None:
        raise AnsorError(
            "it was not built from a lock: measured times are in its manifest",
            f"build it so: ansor-deploy build {model} -o {artifact} --lock {lock} --frozen",
            artifact,
        )
    known = manifest.verification
    request = Request(
        target=manifest.target.machine,
        registry=Path(os.devnull),
        input_shapes=manifest.model.shapes,
        rules=rules,
        lock=lock,
        remake=shlex.join(["ansor-deploy", "tune", str(model), "--lock", str(lock)]),
        frozen=True,
        verify=known.verified,
        tolerances=tuple(
            (name, Tolerance(one.rtol, one.atol)) for name, one in known.allowed.items()
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        outputs = Outputs(Path(folder, artifact.name), header=manifest.header is not None)
        build(model, outputs, request, report)
        made = output_paths(outputs.library, header=outputs.header)
        there = {path: artifact.with_name(path.name) for path in made}
        return {p.name: q.is_file() and p.read_bytes() == q.read_bytes() for p, q in there.items()}


def tune(models: list[Path], request: Request, report: Report) -> TuneResult:
    """Fill the registry for these models without building. DeviceError if nothing can run them.

    What is known of their tasks afterwards goes into the request's lock, if it has one.
    """
    from .model.prepare import merge
    from .tune.queue import tune_missing
    from .tune.sources.claims import prove

    request = with_devices(request, report)
    layers = indexes(request.layers, report.warn)
    with open_workspace(request, layers, report, must_run=True) as work:
        prepared = intake.read(models, work)
        prove(merge(prepared), work)
        planned = plan_models(prepared, work.ledger)
        report.plan(planned)
        tuned = tune_missing(planned, work)
        if request.lock is not None:
            keys = [row.task.key for row in planned.rows]
            write_entries(keys, tuned.records, work.ledger, report)
        return tuned


def write_known(models: list[Path], request: Request, report: Report) -> list[Prepared]:
    """Write the request's lock of what is known of these models, but not over one that is there.

    Nothing is measured: a task that nobody has tuned gets the default schedule.
    """
    with open_workspace(request, indexes(request.layers, report.warn), report) as work:
        prepared = intake.read(models, work)
        if request.lock is not None and not request.lock.exists():
            keys = [task.key for model in prepared for task in model.tasks]
            write_entries(keys, work.ledger.best(keys), work.ledger, report)
        return prepared


def pack(
    models: list[Path], folder: Path, request: Request, report: Report
) -> tuple[TuneResult, Packed]:
    """Take in what a pack's machine has measured, if it has, and write the next candidates."""
    from .model.prepare import merge
    from .tune.pack_files import check_folder, write_pack
    from .tune.queue import pending
    from .tune.result import Spent
    from .tune.sources.pack import take_in

    check_folder(folder)
    check_buildable(request.target)
    request = replace(request, devices=(), finds_devices=False)
    with open_workspace(request, indexes(request.layers, report.warn), report) as work:
        prepared = intake.read(models, work)
        trials = take_in(folder, merge(prepared), work)
        planned = plan_models(prepared, work.ledger)
        report.plan(planned)
        made = write_pack(pending(planned, request), work, folder)
        records = {row.task.key: row.record for row in planned.rows if row.record}
        return TuneResult.of_plan(planned, Spent(trials), records), made


def revalidate(models: list[Path], request: Request, most: int, report: Report) -> list[Retrial]:
    """Try the best `most` records of each other version of TVM that these models' tasks have.

    DeviceError if nothing can run them.
    """
    from .model.prepare import merge
    from .tune.sources.past import outdated, revalidate_tasks

    request = with_devices(request, report)
    layers = indexes(request.layers, report.warn)
    with open_workspace(request, layers, report, must_run=True) as work:
        tasks = merge(intake.read(models, work))
        return revalidate_tasks(tasks, outdated(tasks, work, most), work)


def _unchanged(
    model: Path,
    outputs: Outputs,
    request: Request,
    layers: Layers,
    report: Report,
    *,
    runs: bool,
) -> BuildResult | None:
    """What there is already, if a build would change nothing. runs: it would run the library."""
    write = request.lock is not None or bool(layers)
    with Registry.open(request.registry, write=write) as registry:
        ledger = Ledger(registry, request, measures=runs)
        if write:
            intake.take_in(built_keys(outputs.library, request), ledger, layers, report)
        manifest = current_manifest(model, outputs, request)
        if manifest is None or (runs and not manifest.ran_on):
            return None
        if not has_same_records(manifest, ledger):
            return None
        if request.lock is not None:
            write_used(manifest, ledger, report)
    return _kept(model, outputs, manifest, request)


def _kept(model: Path, outputs: Outputs, manifest: Manifest, request: Request) -> BuildResult:
    """Outputs that stay as they are; only the depfile may be a new one."""
    _depend(model, outputs, manifest, request)
    return BuildResult.unchanged(outputs.library, manifest)
