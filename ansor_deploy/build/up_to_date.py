"""Is an output still what a build would make? Answered without TVM, in tenths of a second."""

from __future__ import annotations

from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..system.digest import file_sha256
from ..artifact.files import read_manifest
from ..artifact.outputs import previous
from ..errors import AnsorError
from ..model.digest import digest
from ..tune.plan import settled
from ..registry.keys import TaskKey
from ..system.digest import canonical_json, sha256
from ..registry.store import Registry

if TYPE_CHECKING:
    from ..request import Request


def identity(model: str, model_digest: str, request: Request) -> str:
    """SHA-256 over all that decides what a build makes, apart from the records.

    model: the name of its file. The figures of the target that only feed estimates are not in it.
    """
    near = request.reuse == "near" and not request.frozen
    target = request.target
    return sha256(
        canonical_json(
            {
                **({"reuse": "near"} if near else {}),
                "model": [model, model_digest],
                "target": [target.name, target.description, target.fingerprint],
                "rules": [file_sha256(path) for path in request.rules],
                "header": request.header,
                "input_shapes": {name: list(s) for name, s in request.input_shapes.items()},
                "tool": __version__,
                "tvm": metadata.version("apache-tvm"),
            }
        )
    )


def built_keys(output: Path, request: Request) -> list[TaskKey]:
    """The tasks of the build that made an output; none where there is no such output."""
    with suppress(AnsorError):
        tasks = read_manifest(output)["tasks"]
        return [TaskKey(task["key"], request.target.fingerprint) for task in tasks]
    return []


def current_manifest(model: Path, output: Path, request: Request) -> dict[str, Any] | None:
    """The output's manifest if a build would change nothing, else None.

    Nothing would change if model, target, tool and output are those of the manifest, and so are
    the records: of a frozen build those of the lock, of another the registry's best, with nothing
    left that matters.
    """
    manifest = previous(output)
    if manifest is None or (manifest["lock"] is not None) != request.frozen:
        return None
    external = [model.parent / one["file"] for one in manifest["model"]["external"]]
    if not all(path.is_file() for path in external):
        return None
    if manifest["identity"] != identity(model.name, digest(model, external), request):
        return None
    same = _same_lock if request.frozen else _same_records
    return manifest if same(manifest, request) else None


def _same_lock(manifest: dict[str, Any], request: Request) -> bool:
    """Whether the lock says of each of these tasks what it said: of others it may say anything."""
    from .lock import lock_digest, read

    keys = [TaskKey(task["key"], request.target.fingerprint) for task in manifest["tasks"]]
    return bool(manifest["lock"] == lock_digest(read(request), keys))


def _same_records(manifest: dict[str, Any], request: Request) -> bool:
    fingerprint, tvm = request.target.fingerprint, manifest["tvm"]
    keys = {TaskKey(task["key"], fingerprint): task for task in manifest["tasks"]}
    with Registry.open(request.registry, write=False) as registry:
        best = registry.best(keys, tvm)
        enough = registry.enough_for(keys, tvm)
    budget = request.budget
    for key, task in keys.items():
        if (best[key].id if key in best else "default") != task["record"]:
            return False
        done = key in best and settled(enough.get(key), request)
        if not done and task["impact"] >= budget.min_impact and budget.trials != 0:
            return False
    return True
