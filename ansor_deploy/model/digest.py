"""What identifies a model file; loads nothing heavy, because every no-op build asks for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ..errors import ModelError

_CHUNK = 1 << 20


def digest(path: Path, external: Iterable[Path] = ()) -> str:
    """SHA-256, in hex, of the model file and of its external-data files in the order given.

    Without external data it is what `sha256sum` prints for the file.

    Raises:
        ModelError: a file is missing or cannot be read.
    """
    whole = _sha256(path)
    for file in external:
        whole.update(_sha256(file).digest())
    return whole.hexdigest()


def _sha256(path: Path) -> hashlib._Hash:
    state = hashlib.sha256()
    buffer = memoryview(bytearray(_CHUNK))
    try:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                state.update(buffer[:count])
    except OSError as error:
        raise unreadable(path, error) from error
    return state


def unreadable(path: Path, error: OSError) -> ModelError:
    """The user's error for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return ModelError("no such file", "Check the path of the model.", path)
    reason = error.strerror or type(error).__name__
    return ModelError(f"cannot be read: {reason}", "Give the path of a readable ONNX file.", path)
