"""The digest of a model; loads nothing heavy, because an unchanged build needs it, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from ...errors import ModelError
from ...system.digest import hash_of_file
from ...system.known_digest import known_sha256

T = TypeVar("T")


def digest(path: Path, external: Iterable[Path] = ()) -> str:
    """SHA-256, in hex, of the model file and of its external-data files in the order given.

    Without external data it is what `sha256sum` prints for the file. ModelError if a file is
    missing or cannot be read.
    """
    others = [bytes.fromhex(_of(known_sha256, file)) for file in external]
    if not others:
        return _of(known_sha256, path)
    whole = _of(hash_of_file, path)
    whole.update(b"".join(others))
    return whole.hexdigest()


def _of(digest_of: Callable[[Path], T], file: Path) -> T:
    try:
        return digest_of(file)
    except OSError as error:
        raise unreadable(file, error) from error


def unreadable(path: Path, error: OSError) -> ModelError:
    """The error for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return ModelError("no such file", "Check the path of the model.", path)
    reason = error.strerror or type(error).__name__
    return ModelError(f"cannot be read: {reason}", "Give the path of a readable ONNX file.", path)


def changed(did: str) -> ModelError:
    """The error for a model with a file that changed. did: what was done to it meanwhile."""
    return ModelError(f"it was changed while it was {did}", "Repeat the command once it is whole.")
