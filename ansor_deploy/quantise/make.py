"""The quantised model of a build: made if it is missing, or was made from other inputs."""

from __future__ import annotations

import tempfile
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .. import __version__, errors
from ..errors import AnsorError, ModelError, UsageError
from ..model.onnx.file_digest import digest
from ..ship.manifest import File, Output
from ..ship.outputs.commit import check_writable
from ..ship.quantised import Quantised, quantised_path, read_facts, write_facts
from ..system.atomic_file import write_whole
from ..system.digest import canonical_json, file_sha256, sha256
from ..system.worker import Worker, WorkerFailure
from .samples import sample_files, samples_digest

if TYPE_CHECKING:
    from ..request import Calibration, Request
    from ..views import Report

SECONDS = 3600.0  # the time after which quantising is given up
_CHILD = "ansor_deploy.quantise.quantiser"


def quantised(
    model: Path, artifact: Path, request: Request, calibration: Calibration, report: Report
) -> tuple[Quantised, bool]:
    """The facts about the quantised model beside a library, and whether it is new.

    A child process makes it from a float model, but only if the model, samples, layers or tools
    differ from those that it was made from. ModelError or UsageError if that is not possible.
    """
    if quantised_path(artifact).resolve() == model.resolve():
        hint = "build it without --precision int8, or give another library with -o"
        raise UsageError("the quantised model would be written over it", hint, model)
    samples = samples_digest(sample_files(calibration.samples))
    known = read_facts(artifact)
    if known and _is_current(known, model, artifact, samples, request, calibration):
        return known, False
    check_writable(artifact)
    report.stage("quantise", f"{model} by {_quantiser()}")
    made, found = _made(model, artifact, request, calibration, report)
    files = {"model": File(model.name, file_sha256(model)), "quantised": made}
    identity = _identity(model, found.pop("digest"), samples, request, calibration)
    facts = msgspec.convert(
        {
            **found,
            **{name: msgspec.to_builtins(one) for name, one in files.items()},
            "identity": identity,
            "quantiser": _quantiser(),
            "samples_digest": samples,
            "kept": sorted(set(calibration.keep_float)),
        },
        Quantised,
    )
    write_facts(artifact, facts)
    report.quantised(facts)
    return facts, True


def _made(
    model: Path, artifact: Path, request: Request, calibration: Calibration, report: Report
) -> tuple[Output, dict[str, Any]]:
    """Write the quantised model; returns its file, and the facts from the child."""
    output = quantised_path(artifact)
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
        draft = Path(folder, output.name)
        asked = {
            "model": str(model),
            "samples": str(calibration.samples),
            "keep_float": list(calibration.keep_float),
            "shapes": {name: list(one) for name, one in request.first_shapes.items()},
            "output": str(draft),
        }
        found = _asked(model, asked, report)
        content = draft.read_bytes()
    if not (output.is_file() and output.read_bytes() == content):
        write_whole(output, content)
    return Output(output.name, file_sha256(output), len(content)), found


def _asked(model: Path, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    """The child's answer, with its progress reported meanwhile; or the error that it returns."""
    with closing(Worker(_CHILD)) as child:
        try:
            said = child.call(f"{_CHILD}:answer", asked, SECONDS, lambda step: report.step(*step))
        except WorkerFailure as failure:
            what = f"quantising it did not end normally: {failure.message}"
            hint = "give fewer samples, or leave layers as they are: --keep-float LAYER"
            raise ModelError(what, hint, model) from failure
    if "refused" in said:
        kind, text, hint, file = said["refused"]
        error: AnsorError = getattr(errors, kind)(text, hint, Path(file) if file else None)
        raise error
    found: dict[str, Any] = said["found"]
    return found


def _quantiser() -> str:
    return f"onnxruntime {metadata.version('onnxruntime')}"


def _is_current(
    known: Quantised,
    model: Path,
    artifact: Path,
    samples: str,
    request: Request,
    calibration: Calibration,
) -> bool:
    """Whether the quantised model exists, is intact, and was made from exactly these inputs."""
    made = quantised_path(artifact)
    external = [model.parent / one for one in known.external]
    if not (made.is_file() and all(one.is_file() for one in external)):
        return False
    words = (model, digest(model, external), samples, request, calibration)
    return known.identity == _identity(*words) and file_sha256(made) == known.quantised.sha256


def _identity(
    model: Path, model_digest: str, samples: str, request: Request, calibration: Calibration
) -> str:
    """SHA-256 over everything that determines a quantised model."""
    return sha256(
        canonical_json(
            {
                "model": [model.name, model_digest],
                "samples": samples,
                "kept": sorted(set(calibration.keep_float)),
                "shapes": {name: list(one) for name, one in request.first_shapes.items()},
                "tools": [__version__, _quantiser(), metadata.version("onnx")],
            }
        )
    )
