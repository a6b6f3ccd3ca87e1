"""The digest of a model; loads nothing heavy, because an unchanged build asks for it, too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ...errors import ModelError
from ...system.digest import hash_of_file


def digest(path: Path, external: Iterable[Path] = ()) -> str:
    """SHA-256, in hex, of the model file and of its external-data files in the order given.

    Without external data it is what `sha256sum` prints for the file.

    Raises:
        ModelError: a file is missing or cannot be read.
    """
    whole, *others = (_hash(file) for file in (path, *external))
    for other in others:
        whole.update(other.digest())
    return whole.hexdigest()


def _hash(file: Path) -> hashlib._Hash:
    try:
        return hash_of_file(file)
    except OSError as error:
        raise unreadable(file, error) from error


def unreadable(path: Path, error: OSError) -> ModelError:
    """The user's error for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return ModelError("no such file", "Check the path of the model.", path)
    reason = error.strerror or type(error).__name__
    return ModelError(f"cannot be read: {reason}", "Give the path of a readable ONNX file.", path)
