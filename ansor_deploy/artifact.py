"""The outputs of a build: library and manifest, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import AnsorError


def manifest_path(artifact: Path) -> Path:
    """Where a library's manifest lies: the same name with .json."""
    return artifact.with_suffix(".json")


def read_manifest(artifact: Path) -> dict[str, Any]:
    """The manifest of a library that is whole; AnsorError if it is not."""
    path = manifest_path(artifact)
    rebuild = "build it again: ansor-deploy build MODEL -o " + str(artifact)
    try:
        manifest = json.loads(path.read_text())
        expected = manifest["artifact"]["bytes"]
    except FileNotFoundError as error:
        raise AnsorError(f"{path}: the manifest of {artifact.name} is missing", rebuild) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AnsorError(f"{path}: not a manifest: {error}", rebuild) from error
    try:
        size = artifact.stat().st_size
    except OSError as error:
        raise AnsorError(f"{artifact}: {error.strerror}", rebuild) from error
    if size != expected:
        raise AnsorError(f"{artifact}: {size} bytes where its manifest says {expected}", rebuild)
    return manifest


def check_writable(output: Path) -> None:
    """AnsorError if outputs could not be written there: before the work, not after it."""
    folder = output.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{output.name}."):
            pass
    except OSError as error:
        raise _cannot_write(folder, error) from error
    if output.is_dir():
        raise AnsorError(f"{output} is a folder", "give the library's file name: -o out/model.so")


def stage(output: Path, export: Callable[[Path], None]) -> Path:
    """Let `export` write the library to a temporary file in the output's folder."""
    folder = Path(tempfile.mkdtemp(dir=output.parent, prefix=f".{output.name}."))
    try:
        export(folder / output.name)
        return folder / output.name
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _cannot_write(output.parent, error) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def discard(staged: Path) -> None:
    """Remove a staged library that will not be shipped."""
    shutil.rmtree(staged.parent, ignore_errors=True)


def commit(staged: Path, output: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Move a staged library in place, its manifest last; returns the manifest written.

    The manifest is the commit mark: it names the library's digest, so that a crash between the
    two moves leaves a library that is known not to be the manifest's.
    """
    try:
        whole = {**manifest, "artifact": _describe(staged, output)}
        text = json.dumps(whole, indent=1, sort_keys=True) + "\n"
        written = staged.with_name("manifest")
        with written.open("w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        staged.chmod(0o777 & ~_umask())
        written.chmod(0o666 & ~_umask())
        staged.replace(output)
        written.replace(manifest_path(output))
    except OSError as error:
        raise _cannot_write(output.parent, error) from error
    finally:
        discard(staged)
    return whole


def previous(output: Path) -> dict[str, Any] | None:
    """The manifest of an output that is there and whole, bit for bit."""
    with suppress(AnsorError):
        manifest = read_manifest(output)
        if file_sha256(output) == manifest["artifact"]["sha256"]:
            return manifest
    return None


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with path.open("rb") as stream:
        digest = hashlib.sha256()
        while block := stream.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()


def _describe(staged: Path, output: Path) -> dict[str, Any]:
    with staged.open("rb") as stream:
        os.fsync(stream.fileno())
    return {
        "file": output.name,
        "bytes": staged.stat().st_size,
        "sha256": file_sha256(staged),
    }


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _cannot_write(folder: Path, error: OSError) -> AnsorError:
    return AnsorError(
        f"cannot write to {folder}: {error.strerror or error}",
        "free some space, or give another place with -o/--output",
    )
