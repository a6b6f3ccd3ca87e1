"""From records to shipped files: compile, verify, compare with the untuned build, write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from .._tvm import VERSION
from ..artifact.depfile import input_files, write_depfile
from ..system.digest import file_sha256
from ..artifact.outputs import commit, staged
from ..codegen.model import check_space, compile_model
from .up_to_date import identity
from ..errors import VerificationError
from ..system.jobserver import threads
from ..codegen.linker import export, linker_name
from .lock import lock_digest
from ..devices.machine import Place, runs_here
from ..tune.plan import impacts, latencies
from ..registry.keys import TaskKey
from ..registry.record import Record
from ..space.rule import rule_set
from ..runtime.model import Model
from .verify import Comparison, Oracle, Verification, compare_speed, seeded_inputs, verify_model

if TYPE_CHECKING:
    from ..model.prepare import Prepared
    from ..registry.lock import Lock
    from ..registry.store import Registry
    from ..report import Report
    from ..request import Request, TuneResult
    from .verify import Library

Records = dict[TaskKey, Record]

# A tuned library so many times slower than the untuned one is not shipped; less is noise.
SLOWER = 1.02


def assemble(
    model: Prepared,
    oracle: Oracle | None,
    place: Place | None,
    output: Path,
    request: Request,
    registry: Registry,
    tuned: TuneResult,
    report: Report,
) -> dict[str, Any]:
    """Write the library and its manifest, which is returned. VerificationError writes nothing.

    Without a place the library is not run, and no oracle is asked.
    """
    records = registry.best([task.key for task in model.tasks], VERSION)
    manifest = _describe(model, records, request, tuned)
    with _staged(model, records, output, request, report) as library:
        if place is None or oracle is None:
            report.stage("verify", "left out, as all that runs the library: nothing here can")
        else:
            loaded = place.load(library, manifest)
            manifest |= _try(loaded, place, oracle, model, records, request, report)
        return _commit(library, model, output, manifest, request)


def assemble_frozen(
    model: Prepared,
    lock: Lock,
    output: Path,
    request: Request,
    tuned: TuneResult,
    report: Report,
) -> dict[str, Any]:
    """Write the library of a lock's records and its manifest, which is returned.

    Nothing that is measured is in either: they are the same on every machine. Where the code runs
    here, its numbers are verified.
    """
    keys = [task.key for task in model.tasks]
    records = {key: lock.records[key] for key in keys if key in lock.records}
    manifest = _without_estimates(_describe(model, records, request, tuned))
    manifest["lock"] = lock_digest(lock, keys)
    with _staged(model, records, output, request, report) as library:
        if runs_here(request.target):
            with threads(request.target.cores) as width:
                loaded = Model(library, manifest, width)
                _verify(loaded, model, Oracle(model.proto, width), request, report)
        return _commit(library, model, output, manifest, request)


def _commit(
    library: Path, model: Prepared, output: Path, manifest: dict[str, Any], request: Request
) -> dict[str, Any]:
    """All outputs in place; the depfile before the manifest, so that no output is without one."""
    inputs = input_files(model.path, manifest, request.files)
    depend = partial(write_depfile, request.depfile, output, inputs)
    return commit(library, output, manifest, header=request.header, before=depend)


@contextmanager
def _staged(
    model: Prepared, records: Records, output: Path, request: Request, report: Report
) -> Iterator[Path]:
    """The library under a temporary name, to be tried and committed."""
    report.stage("compile", f"{len(records)} of {len(model.tasks)} tasks with a record")
    check_space(model.imported, output.parent)

    def compile_to(path: Path) -> None:
        _compile(model, records, request, path, report)

    with staged(output, compile_to) as library:
        yield library


def _try(
    library: Library,
    place: Place,
    oracle: Oracle,
    model: Prepared,
    records: Records,
    request: Request,
    report: Report,
) -> dict[str, Any]:
    """What the manifest says of the runs. The untuned library takes the place of a slower one."""
    verified = _verify(library, model, oracle, request, report)
    untuned, comparison = _compare(library, place, model, records, request, report)
    shipped = "tuned" if records else "untuned"
    if comparison.latency_ms > SLOWER * comparison.untuned_ms:
        report.warn("the records make this model slower here: the untuned library is shipped")
        verified = _verify(untuned, model, oracle, request, report)
        shipped = "untuned"
        untuned.path.replace(library.path)
        comparison = Comparison(comparison.untuned_ms, comparison.untuned_ms)
    return {
        "ran_on": place.name,
        "verify": verified.to_json(),
        "speed": comparison.to_json(),
        "shipped": shipped,
    }


def _compile(
    model: Prepared, records: Records, request: Request, path: Path, report: Report
) -> None:
    target = request.target
    rules = rule_set(request.rules, target.kind)
    built = compile_model(model.imported, model.by_function, records, target, rules, report.warn)
    export(built, path, target)


def _verify(
    library: Library, model: Prepared, oracle: Oracle, request: Request, report: Report
) -> Verification:
    report.stage("verify", "against ONNX Runtime on seeded inputs")
    verification = verify_model(library, oracle, request.seed)
    report.verified(verification)
    if not verification.ok:
        raise VerificationError(
            f"the library's outputs differ from {verification.oracle}: largest "
            f"absolute error {verification.max_abs_err:.3g}, relative to the output's scale "
            f"{verification.max_rel_err:.3g}; no library was written",
            "build with --trials 0 and an empty --registry to see whether a record is wrong, "
            "and report it",
            model.path,
        )
    return verification


def _compare(
    library: Library,
    place: Place,
    model: Prepared,
    records: Records,
    request: Request,
    report: Report,
) -> tuple[Library, Comparison]:
    """The same model with no record applied, and the two timed side by side."""
    report.stage("compare", "with the untuned build")
    inputs = seeded_inputs(library.inputs, request.seed, upper=2)
    untuned = library
    if records:
        path = library.path.with_name("untuned.so")
        _compile(model, {}, request, path, report)
        untuned = place.load(path, library.manifest)
    comparison = compare_speed(library, untuned, inputs)
    report.compared(comparison)
    return untuned, comparison


def _describe(
    model: Prepared, records: Records, request: Request, tuned: TuneResult
) -> dict[str, Any]:
    target, imported = request.target, model.imported
    return {
        "format": 1,
        "tool": __version__,
        "tvm": VERSION,
        "linker": linker_name(target),
        "identity": identity(model.path.name, model.digest, request),
        "model": {
            "name": model.path.name,
            "digest": model.digest,
            "sha256": file_sha256(model.path),
            "external": [_file(path, model.path.parent) for path in model.external],
            "input_shapes": {name: list(one) for name, one in request.input_shapes.items()},
        },
        "rules": [_file(path, path.parent) for path in request.rules],
        "inputs": [_tensor(tensor) for tensor in imported.inputs],
        "outputs": [_tensor(tensor) for tensor in imported.outputs],
        "target": {**target.to_json(), "fingerprint": target.fingerprint},
        "tuning": tuned.to_json(),
        "ran_on": None,  # as long as nothing was run
        "verify": None,
        "speed": None,
        "shipped": "tuned" if records else "untuned",
        "lock": None,
        "tasks": _tasks(model, records, request),
    }


def _tasks(model: Prepared, records: Records, request: Request) -> list[dict[str, Any]]:
    """As they stand in a manifest; of a frozen build without estimates."""
    known = {} if request.frozen else _estimates(model, records, request)
    return [
        {
            "name": task.name,
            "op": task.workload.op,
            "key": task.key.workload,
            "weight": task.weight,
            "record": records[task.key].id if task.key in records else "default",
            **known.get(task.key, {"impact": None, "latency_ms": None}),
        }
        for task in model.tasks
    ]


def _estimates(model: Prepared, records: Records, request: Request) -> dict[TaskKey, Any]:
    seconds = latencies(model.tasks, records, request.target)
    shares = impacts(model.tasks, records, request.target)
    return {k: {"impact": shares[k], "latency_ms": seconds[k] * 1e3} for k in seconds}


def _without_estimates(manifest: dict[str, Any]) -> dict[str, Any]:
    """What a machine is only taken to do differs between machines that build the same."""
    target = {**manifest["target"], "peak_gflops": None, "memory_gbs": None}
    return {**manifest, "target": target, "tuning": None}


def _file(path: Path, folder: Path) -> dict[str, str]:
    return {"file": str(path.relative_to(folder)), "sha256": file_sha256(path)}


def _tensor(tensor: Any) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}
