"""Digests, and the canonical JSON text over which those of values are computed."""

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
    """The canonical JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def hash_of_file(path: Path) -> hashlib._Hash:
    """The hash state of a regular file's SHA-256, to be read or updated further."""
    state = hashlib.sha256()
    buffer = memoryview(bytearray(1 << 20))
    with open_regular(path) as stream:
        while count := stream.readinto(buffer):
            state.update(buffer[:count])
    return state


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    return hash_of_file(path).hexdigest()
