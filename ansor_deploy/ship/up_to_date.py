"""Check whether an output is still what a build would make, in tenths of a second, without TVM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from .. import __version__
from ..errors import AnsorError
from ..model.onnx.file_digest import digest
from ..registry.record import Record, TaskKey
from ..space.rule_files import file_digest
from ..system.digest import canonical_json, sha256
from ..system.environment import version
from ..tune.ledger import Ledger
from ..tune.standing import records_of
from ..tune.workspace import open_registry
from .build_result import BuildResult
from .manifest import Code, Draft, Manifest, Speed, read_manifest
from .outputs.commit import previous
from .outputs.depfile import note_inputs

if TYPE_CHECKING:
    from ..request import Outputs, Request
    from ..views import Report


def identity(model: str, model_digest: str, request: Request, *, header: bool) -> str:
    """SHA-256 over everything except the records that decides what a build makes.

    model: the name of its file. Figures of the target that only feed estimates are not in it.
    """
    near = request.reuse == "near" and not request.frozen
    target = request.target
    return sha256(
        canonical_json(
            {
                **({"reuse": "near"} if near else {}),
                **({"context": request.context} if request.context else {}),
                **({"precision": "strict"} if request.precision == "strict" else {}),
                **({"preset": request.preset} if request.preset else {}),
                **({"tolerances": request.allowed} if request.tolerances else {}),
                "model": [model, model_digest],
                "target": [target.name, target.description, target.fingerprint],
                **({"codes": [one.fingerprint for one in request.codes]} if request.codes else {}),
                "rules": [file_digest(path) for path in request.rules],
                "header": header,
                "input_shapes": request.shapes_json,
                "tool": __version__,
                "tvm": version("apache-tvm"),
            }
        )
    )


def unchanged(
    model: Path,
    outputs: Outputs,
    request: Request,
    layers: Sequence[Path],
    report: Report,
    *,
    runs: bool,
) -> BuildResult | None:
    """The result of the earlier build if a new one would change nothing; else None.

    layers: the updated indexes of layers. runs: whether the build would run the library.
    """
    write = request.lock is not None or bool(layers)
    with open_registry(request, write=write) as registry:
        ledger = Ledger(registry, request, measures=runs)
        if write:
            from ..tune.intake import take_in

            take_in(_built_keys(outputs.library, request), ledger, layers, report)
        manifest = current_manifest(model, outputs, request)
        if manifest is None or (runs and not manifest.ran_on):
            return None
        if not has_same_records(manifest, ledger):
            return None
        if request.lock is not None:
            from .lock import write_used

            write_used(manifest, ledger, report)
    return _kept(model, outputs, manifest, request)


def unchanged_frozen(model: Path, outputs: Outputs, request: Request) -> BuildResult | None:
    """As `unchanged`, for a frozen build, which reads the lock and no registry."""
    from .lock import is_same

    manifest = current_manifest(model, outputs, request)
    if manifest is None or not is_same(manifest, request):
        return None
    return _kept(model, outputs, manifest, request)


def _kept(model: Path, outputs: Outputs, manifest: Manifest, request: Request) -> BuildResult:
    """The result for outputs that stay as they are; only the depfile may be written."""
    note_inputs(model, outputs, manifest, request)
    return BuildResult.unchanged(outputs.library, manifest)


def _built_keys(library: Path, request: Request) -> list[TaskKey]:
    """The keys of a built library's tasks; none where there is no library."""
    with suppress(AnsorError):
        return read_manifest(library).keys(request.target)
    return []


def current_manifest(model: Path, outputs: Outputs, request: Request) -> Manifest | None:
    """The manifest of outputs if model, target and tool are still the same; else None.

    The records are checked separately: by `has_same_records`, or by the lock of a frozen build.
    """
    manifest = previous(outputs.library)
    if manifest is None or (manifest.lock is not None) != request.frozen or request.retune:
        return None
    if request.verify and not manifest.verification.verified:
        return None
    external = [model.parent / one.file for one in manifest.model.external]
    if not all(path.is_file() for path in external):
        return None
    model_digest = digest(model, external)
    same = identity(model.name, model_digest, request, header=outputs.header)
    return manifest if manifest.identity == same and _is_within(manifest, request) else None


def _is_within(manifest: Manifest, request: Request) -> bool:
    """Whether a library keeps to the request's limits of memory."""
    limits, taken = request.limits, manifest.memory
    pairs = ((limits.size, taken.library), (limits.memory, taken.peak))
    return all(most is None or size <= most for most, size in pairs)


def records_digest(records: Iterable[Record]) -> str:
    """SHA-256 over the ids of records, independent of their order."""
    return sha256(canonical_json(sorted(record.id for record in records)))


def has_same_records(manifest: Draft, ledger: Ledger) -> bool:
    """Whether the registry's best records are those of a manifest, with nothing left to tune.

    Records are compared for all its codes; only the code that this machine runs is tuned.
    """
    said = {one.target.fingerprint: one for one in manifest.codes or ()}
    return _has_same_records(manifest, ledger) and all(
        _has_same_records(
            _alone(manifest, said[one.target.fingerprint]),
            Ledger(ledger.registry, one, measures=False),
        )
        for one in ledger.request.others
    )


def _alone(manifest: Draft, code: Code) -> Draft:
    """The manifest as it would be for one code alone that this machine does not run."""
    known = {"tasks": code.tasks, "lenders": code.lenders}
    return replace(manifest, **known, shipped="tuned", speed=None)


def _has_same_records(manifest: Draft, ledger: Ledger) -> bool:
    """As `has_same_records`, for the code of the request's target alone.

    Records also count as the same if the manifest's build found them slower than the untuned
    library, which it shipped. Tasks that the device had no memory to try do not count as left to
    tune. Where nothing runs, what neighbours lend must be the same as well.
    """
    keys, budget = manifest.keys(ledger.request.target), ledger.request.budget
    standing = ledger.standing(keys)
    best = records_of(standing)
    lacking = [key for key in standing if key not in best]
    if manifest.precision == "strict":  # requested, or found necessary by a build
        best = {key: record for key, record in best.items() if not record.rewrites}
    speed, no_room = manifest.speed, manifest.tuning.no_room if manifest.tuning else ()
    compared = speed is not None and speed.records == records_digest(best.values())
    slower = manifest.shipped == "untuned" and compared
    tunes = budget.trials != 0 and not _meets_goal(speed, ledger.request)
    if not ledger.measures and not _lends_the_same(manifest, lacking, ledger):
        return False
    for key, task in zip(keys, manifest.tasks, strict=True):
        if not slower and (best[key].id if key in best else "default") != task.record:
            return False
        matters = task.impact is None or task.impact >= budget.min_impact
        if ledger.request.require_hits and matters and key not in best:
            return False
        if ledger.measures and standing[key].claim and matters:
            return False
        unfinished = standing[key].reason and key.workload not in no_room
        if unfinished and matters and tunes:
            return False
    return True


def _lends_the_same(manifest: Draft, lacking: Sequence[TaskKey], ledger: Ledger) -> bool:
    """Whether the same neighbours lend as before. lacking: tasks without a record."""
    from ..tune.lenders import lenders, lenders_digest

    return manifest.lenders == lenders_digest(lenders(lacking, ledger))


def _meets_goal(speed: Speed | None, request: Request) -> bool:
    """Whether a library meets the objective's goal already. speed: that of its manifest."""
    return speed is not None and not any(request.objective.slopes([max(speed.shapes_ms) / 1e3]))
