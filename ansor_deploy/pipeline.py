"""A model's way through the tool, with one function for each command; no step goes back.

    quantise? -> read -> prove -> plan -> tune -> ship: compile, describe, try, race, commit

Heavy modules are imported where they are used: an unchanged build needs none of them, and a model
that is refused does not need TVM.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from .devices.machine import runs_here
from .errors import AnsorError, VerificationError
from .request import Calibration, Outputs, Request
from .ship.build_result import BuildResult, finished_build
from .ship.outputs.commit import check_writable, committed
from .ship.outputs.places import check_places
from .ship.up_to_date import unchanged, unchanged_frozen
from .system.interrupt import check
from .tune.workspace import (
    can_run,
    check_buildable,
    nowhere,
    open_workspace,
    with_devices,
    without_runs,
)

if TYPE_CHECKING:
    from .model.prepare import Prepared
    from .ship.manifest import Manifest
    from .ship.shipment import Shipment
    from .tune.plan import Plan
    from .tune.result import Packed, TuneResult
    from .tune.sources.past import Retrial
    from .views import Report


def build(model: Path, outputs: Outputs, request: Request, report: Report) -> BuildResult:
    """Tune tasks that are missing and matter, compile, verify, and write library and manifest.

    For a target whose code cannot run here, the library uses existing records and default
    schedules, and a stand-in is verified; the manifest says so. A frozen build takes its records
    only from the lock, and writes the same bytes on every host. With a calibration, the model is
    quantised first, and the quantised one is built. ModelError, DeviceError, MissingRecordError,
    RegistryError, VerificationError or AnsorError where the build fails; then no output was
    written, and all measurements are in the registry.
    """
    check_places(model, outputs, request)
    if request.preset:
        from .ship.race.presets import check_preset

        check_preset(with_devices(request, report))
    if request.calibration is not None:
        return _build_quantised(model, outputs, request, request.calibration, report)
    if request.frozen:
        return _build_frozen(model, outputs, request, report)
    request = with_devices(request, report)
    if not (runs := can_run(request)):
        request = without_runs(request, report)
    layers = _indexes(request, report)
    result = unchanged(model, outputs, request, layers, report, runs=runs)
    return result or _build_anew(model, outputs, request, layers, report)


def _build_quantised(
    model: Path, outputs: Outputs, request: Request, calibration: Calibration, report: Report
) -> BuildResult:
    """Build the quantised model, which lies beside the library; make it first if need be."""
    from .quantise.make import quantised
    from .quantise.samples import sample_files
    from .ship.quantised import quantised_path

    facts, new = quantised(model, outputs.library, request, calibration, report)
    read = [model, *(model.parent / one for one in facts.external)]
    sources = (*request.sources, *read, *sample_files(calibration.samples))
    asked = replace(request, calibration=None, sources=sources)
    result = build(quantised_path(outputs.library), outputs, asked, report)
    return replace(result, quantised=facts, up_to_date=result.up_to_date and not new)


def gained(
    model: Path, result: BuildResult, request: Request, report: Report, silent: Report
) -> BuildResult:
    """Time the library beside one of the float model, and add the gain of quantising to the result.

    It is done only where this machine runs both, and once for a library. The float library is not
    kept. silent: the report of its build.
    """
    import tempfile

    from .ship.quantised import write_facts
    from .ship.race.beside import gain_of

    facts = result.quantised
    if facts is None or request.devices or not runs_here(request.target):
        return result
    if facts.gain and facts.gain.library == result.manifest.artifact.sha256:
        return result
    report.stage("gain", f"beside a library of {model}")
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
        other = Path(folder, "float32.so")
        try:
            _build_aside(model, Outputs(other), request, silent)
        except AnsorError as error:
            report.warn(f"what quantising gained is not known: {error}")
            return result
        gain = gain_of(result.artifact, other)
    report.gained(gain)
    facts = structs.replace(facts, gain=gain)
    write_facts(result.artifact, facts)
    return replace(result, quantised=facts)


def _build_aside(model: Path, outputs: Outputs, request: Request, report: Report) -> None:
    """Build a library from existing records, only to time it: with no limits and no history."""
    from .ship.shipment import Shipment
    from .tune import intake
    from .tune.plan import plan_models
    from .tune.queue import tune_missing

    plain = Request(request.target, request.registry, input_shapes=request.input_shapes)
    plain = replace(plain, budget=replace(plain.budget, trials=0), verify=False)
    with open_workspace(plain, (), report) as work:
        (prepared,), tasks = intake.read([model], work)
        tuned = tune_missing(plan_models([prepared], tasks, work), work)
        _ship(Shipment.of_work(prepared, outputs, work, tuned.records), tuned)


def _build_anew(
    model: Path, outputs: Outputs, request: Request, layers: tuple[Path, ...], report: Report
) -> BuildResult:
    from .ship.lock import write_used
    from .tune import intake
    from .tune.hits import check_hits
    from .tune.plan import plan_models

    _begin(outputs, request)
    with open_workspace(request, layers, report) as work:
        (prepared,), tasks = intake.read([model], work)
        from .ship.memory_limits import check_limits
        from .ship.shipment import Shipment
        from .ship.verify.judges import check_named
        from .ship.verify.oracle import oracles_of
        from .tune.queue import tune_missing
        from .tune.sources.claims import prove

        check_named(request.allowed, prepared.protos[0])
        # Open the oracles first: a model that they refuse is not worth tuning.
        oracles = oracles_of(prepared.protos) if request.verify else []
        prove(tasks, work)
        planned = plan_models([prepared], tasks, work)
        check_limits(planned.memory[0], request.limits, model, work.machine)
        report.plan(planned)
        check_hits(planned, request)
        tuned = tune_missing(planned, work)
        check()
        shipment = Shipment.of_work(prepared, outputs, work, tuned.records, oracles)
        manifest = _ship(shipment, tuned)
        for code in shipment.codes:
            work.ledger.put_aside(code.put_aside)
        write_used(manifest, work.ledger, report)
        work.registry.add_build(finished_build(manifest, planned, tuned.trials, outputs, request))
    return BuildResult(outputs.library, manifest, tuned)


def _begin(outputs: Outputs, request: Request) -> None:
    """Look whether outputs can be written, and start the oracle's process while a model is read."""
    check_writable(outputs.library, *outputs.elsewhere)
    if request.verify:
        from .ship.verify import session

        session.start()


def _build_frozen(model: Path, outputs: Outputs, request: Request, report: Report) -> BuildResult:
    """Build from the lock only: no registry is read and nothing is measured."""
    from .ship.lock import on_its_host, read_locked
    from .tune.result import TuneResult

    asked, request = request, on_its_host(request)
    if result := unchanged_frozen(model, outputs, request):
        return result
    _begin(outputs, request)
    prepared, lock = read_locked(model, asked, request, report)
    from .ship.shipment import Shipment
    from .ship.verify.judges import check_named

    check_named(request.allowed, prepared.protos[0])
    shipment = Shipment.of_lock(prepared, outputs, lock, request, report)
    tuned = TuneResult.untuned(len(prepared.tasks), len(shipment.records))
    return BuildResult(outputs.library, _ship(shipment, tuned), tuned)


def _ship(shipment: Shipment, tuned: TuneResult) -> Manifest:
    """Compile, describe, try, race and commit. VerificationError writes nothing.

    If verification fails and tasks were rewritten, the library is built again without rewritings:
    these round differently, and turn an infinity into NaN in more places.
    """
    from .ship.compile import compiled
    from .ship.describe import describe
    from .ship.race.presets import with_preset
    from .ship.race.raced import raced
    from .ship.verify.tried import tried, tried_on

    if shipment.machine is not None:
        shipment.machine.start()
    try:
        with compiled(shipment) as (path, codes):
            draft = describe(shipment, tuned, codes)
            if shipment.machine is None:
                draft = tried(shipment, path, draft)
            else:
                library = shipment.machine.load(path, draft.to_json())
                draft = tried_on(shipment, draft, library, shipment.machine)
                if shipment.request.preset:
                    draft = with_preset(shipment, library, draft)
                    library = shipment.machine.load(path, draft.to_json())
                draft = raced(shipment, path, draft, library, shipment.machine)
            return committed(shipment, path, draft)
    except VerificationError as error:
        if shipment.strict or not shipment.rewritten:
            raise
        shipment.report.warn(f"{error.text}: it is built again as with --precision strict")
    return _ship(shipment.strictly(), tuned)


def plan(models: list[Path], request: Request, report: Report) -> Plan:
    """The plan of `build` or `tune` for these models. It writes nothing and asks no device."""
    from .tune import intake
    from .tune.plan import plan_models

    request = with_devices(request, report)
    if not can_run(request):
        report.warn(nowhere(request))
    layers = _indexes(request, report)
    with intake.looked_up(models, request, layers, report) as (prepared, tasks, work):
        return plan_models(prepared, tasks, work)


def _indexes(request: Request, report: Report) -> tuple[Path, ...]:
    """The updated indexes of the request's layers; most requests have none."""
    if not request.layers:
        return ()
    from .registry.layers import indexes

    return indexes(request.layers, report.warn)


def rebuild(
    artifact: Path, model: Path, lock: Path, rules: tuple[Path, ...], report: Report
) -> dict[str, bool]:
    """Rebuild a library in a temporary folder. Returns for each output whether its bytes are equal.

    AnsorError where it was not built from a lock; otherwise it raises what a frozen build raises.
    """
    import tempfile

    from .ship.rebuild import locked_manifest, request_of, same_bytes

    manifest = locked_manifest(artifact, model, lock)
    with tempfile.TemporaryDirectory() as folder:
        again = Outputs(Path(folder, artifact.name), header=manifest.header is not None)
        build(model, again, request_of(manifest, model, lock, rules), report)
        return same_bytes(artifact, again.library, header=again.header)


def tune(models: list[Path], request: Request, report: Report) -> TuneResult:
    """Tune these models into the registry, without building. DeviceError if nothing can run them.

    The best records of their tasks then go into the request's lock, if it has one.
    """
    from .ship.lock import write_entries
    from .tune import intake
    from .tune.plan import plan_models
    from .tune.queue import tune_missing
    from .tune.sources.claims import prove

    request = with_devices(request, report)
    layers = _indexes(request, report)
    with open_workspace(request, layers, report, must_run=True) as work:
        prepared, tasks = intake.read(models, work)
        prove(tasks, work)
        planned = plan_models(prepared, tasks, work)
        report.plan(planned)
        tuned = tune_missing(planned, work)
        write_entries([task.key for task in tasks], tuned.records, work.ledger, report)
        return tuned


def write_known(models: list[Path], request: Request, report: Report) -> list[Prepared]:
    """Write the request's lock with the known records of these models, unless the lock exists.

    Nothing is measured: a task that was never tuned gets the default schedule.
    """
    from .ship.lock import write_entries
    from .tune import intake

    with open_workspace(request, _indexes(request, report), report) as work:
        prepared, tasks = intake.read(models, work)
        if request.lock is not None and not request.lock.exists():
            keys = [task.key for task in tasks]
            write_entries(keys, work.ledger.best(keys), work.ledger, report)
        return prepared


def pack(
    models: list[Path], folder: Path, request: Request, report: Report
) -> tuple[TuneResult, Packed]:
    """Take in the results of a pack's machine, if there are any, and write the next candidates."""
    from .tune import intake
    from .tune.pack_files import check_folder, write_pack
    from .tune.plan import plan_models
    from .tune.queue import pending
    from .tune.result import Spent, TuneResult
    from .tune.sources.pack import take_in

    check_folder(folder)
    check_buildable(request.target)
    request = replace(request, devices=(), finds_devices=False)
    with open_workspace(request, _indexes(request, report), report) as work:
        prepared, tasks = intake.read(models, work)
        trials = take_in(folder, tasks, work)
        planned = plan_models(prepared, tasks, work)
        report.plan(planned)
        written = write_pack(pending(planned, request), work, folder)
        records = {row.task.key: row.record for row in planned.rows if row.record}
        return TuneResult.of_plan(planned, Spent(trials), records), written


def revalidate(models: list[Path], request: Request, most: int, report: Report) -> list[Retrial]:
    """Try the best `most` records of each other version of TVM that these models' tasks have.

    DeviceError if nothing can run them.
    """
    from .tune import intake
    from .tune.sources.past import outdated, revalidate_tasks

    request = with_devices(request, report)
    layers = _indexes(request, report)
    with open_workspace(request, layers, report, must_run=True) as work:
        _, tasks = intake.read(models, work)
        return revalidate_tasks(tasks, outdated(tasks, work, most), work)
