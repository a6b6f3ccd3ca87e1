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
from ..plan import settled
from ..registry.keys import TaskKey
from ..system.digest import canonical_json, sha256
from ..registry.store import Registry

if TYPE_CHECKING:
    from ..request import Session


def identity(model: str, model_digest: str, session: Session) -> str:
    """SHA-256 over all that decides what a build makes, apart from the records.

    model: the name of its file. The figures of the target that only feed estimates are not in it.
    """
    near = session.reuse == "near" and not session.frozen
    target = session.target
    return sha256(
        canonical_json(
            {
                **({"reuse": "near"} if near else {}),
                "model": [model, model_digest],
                "target": [target.name, target.description, target.fingerprint],
                "rules": [file_sha256(path) for path in session.rules],
                "header": session.header,
                "input_shapes": {name: list(s) for name, s in session.input_shapes.items()},
                "tool": __version__,
                "tvm": metadata.version("apache-tvm"),
            }
        )
    )


def built_keys(output: Path, session: Session) -> list[TaskKey]:
    """The tasks of the build that made an output; none where there is no such output."""
    with suppress(AnsorError):
        tasks = read_manifest(output)["tasks"]
        return [TaskKey(task["key"], session.target.fingerprint) for task in tasks]
    return []


def current_manifest(model: Path, output: Path, session: Session) -> dict[str, Any] | None:
    """The output's manifest if a build would change nothing, else None.

    Nothing would change if model, target, tool and output are those of the manifest, and so are
    the records: of a frozen build those of the lock, of another the registry's best, with nothing
    left that matters.
    """
    manifest = previous(output)
    if manifest is None or (manifest["lock"] is not None) != session.frozen:
        return None
    external = [model.parent / one["file"] for one in manifest["model"]["external"]]
    if not all(path.is_file() for path in external):
        return None
    if manifest["identity"] != identity(model.name, digest(model, external), session):
        return None
    same = _same_lock if session.frozen else _same_records
    return manifest if same(manifest, session) else None


def _same_lock(manifest: dict[str, Any], session: Session) -> bool:
    """Whether the lock says of each of these tasks what it said: of others it may say anything."""
    from .lock import lock_digest, read

    keys = [TaskKey(task["key"], session.target.fingerprint) for task in manifest["tasks"]]
    return bool(manifest["lock"] == lock_digest(read(session), keys))


def _same_records(manifest: dict[str, Any], session: Session) -> bool:
    fingerprint, tvm = session.target.fingerprint, manifest["tvm"]
    keys = {TaskKey(task["key"], fingerprint): task for task in manifest["tasks"]}
    with Registry.open(session.registry, write=False) as registry:
        best = registry.best(keys, tvm)
        enough = registry.enough_for(keys, tvm)
    budget = session.budget
    for key, task in keys.items():
        if (best[key].id if key in best else "default") != task["record"]:
            return False
        done = key in best and settled(enough.get(key), session)
        if not done and task["impact"] >= budget.min_impact and budget.trials != 0:
            return False
    return True
