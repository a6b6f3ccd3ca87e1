"""Digests of large files, which are noted so that untouched files are not read again.

Inode, size and times show that a file is untouched: the kernel alone sets ctime, at every change of
content, name or permissions. A digest is noted only if the file has been at rest for longer than
the resolution of the coarsest file system's clock, and did not change while it was read.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from ..errors import AnsorError
from .atomic_file import write_whole
from .digest import file_sha256, sha256
from .environment import cache_folder
from .regular_file import open_regular, read_regular

_LARGE = 32 << 20  # bytes; a smaller file is read in less time than a note saves
_AT_REST = 3.0  # seconds since the last change
_MOST_BYTES = 1 << 10  # of the file with a note


def known_sha256(path: Path) -> str:
    """Hex SHA-256 of a regular file. OSError where it cannot be read."""
    touched = _touched(path)
    if touched.st_size < _LARGE:
        return file_sha256(path)
    with suppress(OSError, AnsorError, ValueError):
        note, signs = _note(path), _signs(touched)
        if (said := read_regular(note, _MOST_BYTES).decode("ascii").split())[:-1] == signs:
            return said[-1]
    found = file_sha256(path)
    if time.time() - touched.st_ctime > _AT_REST and signs_of(path) == _signs(touched):
        with suppress(OSError, AnsorError):
            text = " ".join([*_signs(touched), found])
            write_whole(_note(path), text.encode(), durable=False)
    return found


def signs_of(path: Path) -> list[str]:
    """What differs whenever a file's content does. OSError where it cannot be read."""
    return _signs(_touched(path))


def _touched(path: Path) -> os.stat_result:
    """The status of a file once opened: opening makes a network file system ask its server."""
    with open_regular(path) as stream:
        return os.fstat(stream.fileno())


def _signs(found: os.stat_result) -> list[str]:
    times = found.st_mtime_ns, found.st_ctime_ns
    return [*map(str, (found.st_dev, found.st_ino, found.st_size, *times))]


def _note(path: Path) -> Path:
    """The file in which a file's digest is noted. AnsorError where there is no home directory."""
    return cache_folder("digests") / sha256(str(path.resolve()))
