"""A frozen build once more, to see whether the same bytes come out."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .artifact.files import output_paths, read_manifest
from .errors import AnsorError
from .pipeline import build
from .report import Report
from .session import Session
from .target import built_for


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


def _equal(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()
