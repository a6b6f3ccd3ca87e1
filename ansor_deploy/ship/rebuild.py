"""Rebuild a library that was built from a lock, and check whether it has the same bytes."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from ..errors import AnsorError
from ..request import Request, Tolerance
from .manifest import Manifest, output_paths, read_manifest


def locked_manifest(artifact: Path, model: Path, lock: Path) -> Manifest:
    """The manifest of a library; AnsorError where the library was not built from a lock."""
    manifest = read_manifest(artifact)
    if manifest.lock is None:
        raise AnsorError(
            "it was not built from a lock: measured times are in its manifest",
            f"build it so: ansor-deploy build {model} -o {artifact} --lock {lock} --frozen",
            artifact,
        )
    return manifest


def request_of(manifest: Manifest, model: Path, lock: Path, rules: tuple[Path, ...]) -> Request:
    """The request of the frozen build that made a library."""
    known = manifest.verification
    return Request(
        target=manifest.target.machine,
        registry=Path(os.devnull),
        input_shapes=manifest.model.shapes,
        rules=rules,
        lock=lock,
        remake=shlex.join(["ansor-deploy", "tune", str(model), "--lock", str(lock)]),
        frozen=True,
        preset=manifest.preset.name if manifest.preset else "",
        context=manifest.context.rows if manifest.context else 0,
        verify=known.verified,
        tolerances=tuple(
            (name, Tolerance(one.rtol, one.atol)) for name, one in known.allowed.items()
        ),
    )


def same_bytes(artifact: Path, again: Path, *, header: bool) -> dict[str, bool]:
    """For each output of a build, by name, whether it has the same bytes as another build's.

    header: whether a C header is one of the outputs.
    """
    made = output_paths(again, header=header)
    there = {path: artifact.with_name(path.name) for path in made}
    return {p.name: q.is_file() and p.read_bytes() == q.read_bytes() for p, q in there.items()}
