"""Digests, and the one JSON text of a value that they are taken of."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .regular_file import open_regular


def sha256(text: str) -> str:
    """Hex SHA-256 of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def hash_of_file(path: Path) -> hashlib._Hash:
    """The SHA-256 of a regular file, to be read or to be updated further."""
    state = hashlib.sha256()
    buffer = memoryview(bytearray(1 << 20))
    with open_regular(path) as stream:
        while count := stream.readinto(buffer):
            state.update(buffer[:count])
    return state


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    return hash_of_file(path).hexdigest()
