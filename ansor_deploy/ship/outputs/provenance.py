"""The provenance of a library: an in-toto statement with SLSA provenance, in a file beside it.

Each input is identified as a build identifies it: a file by its SHA-256, a target by its
fingerprint, the lock or the registry by the digest of every record that was used. The statement
contains no time, no path and no name of a machine. It follows from the manifest, and so can be
checked against it.
"""

import hashlib
from pathlib import Path
from typing import Any

from ..manifest import Manifest, json_bytes, manifest_path

BUILD_TYPE = "urn:ansor-deploy:build:v1"


def statement(manifest: Manifest, content: bytes) -> bytes:
    """The statement about the outputs of a build. content: that of the manifest's file."""
    parts = [part for part in (manifest.artifact, manifest.header) if part]
    subjects = [_named(part.file, part.sha256) for part in parts]
    name = manifest_path(Path(manifest.artifact.file)).name
    tool = manifest.tool
    builder = {"id": f"pkg:pypi/ansor-deploy@{tool}", "version": {"ansor-deploy": tool}}
    subjects.append(_named(name, hashlib.sha256(content).hexdigest()))
    whole = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": sorted(subjects, key=lambda subject: str(subject["name"])),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {"buildDefinition": _definition(manifest), "runDetails": {"builder": builder}},
    }
    return json_bytes(whole)


def _definition(manifest: Manifest) -> dict[str, Any]:
    model = manifest.model
    return {
        "buildType": BUILD_TYPE,
        "externalParameters": {
            "model": model.name,
            "target": manifest.target.name,
            "input_shapes": model.input_shapes,
            "frozen": manifest.lock is not None,
            "header": manifest.header is not None,
        },
        "internalParameters": {"linker": manifest.linker},
        "resolvedDependencies": _dependencies(manifest),
    }


def _dependencies(manifest: Manifest) -> list[dict[str, Any]]:
    model, target = manifest.model, manifest.target
    used = sorted({task.record for task in manifest.tasks} - {"default"})
    return [
        _named(model.name, model.sha256),
        *(_named(one.file, one.sha256) for one in model.external),
        _named(f"target {target.name}", target.fingerprint),
        *(_named(f"rule {one.file}", one.sha256) for one in manifest.rules),
        *(_named(f"record {name}", name) for name in used),
        {"name": "apache-tvm", "uri": f"pkg:pypi/apache-tvm@{manifest.tvm}"},
    ]


def _named(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest}}
