"""Digests of large files, which are not read again as long as nobody has touched them.

That a file was not touched, its inode, its size and its times say: one of these the kernel alone
sets, at every change of content, name or permissions. A digest is noted only of a file that has
been at rest for longer than the coarsest clock of a file system, and of which nothing changed while
it was read.
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

_LARGE = 32 << 20  # bytes; what is smaller is read in less time than a note saves
_AT_REST = 3.0  # seconds
_MOST_BYTES = 1 << 10  # of a note


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
    """What is another where a file's content is. OSError where it cannot be read."""
    return _signs(_touched(path))


def _touched(path: Path) -> os.stat_result:
    """What the system says of an open file: opening it asks a server of files anew."""
    with open_regular(path) as stream:
        return os.fstat(stream.fileno())


def _signs(found: os.stat_result) -> list[str]:
    times = found.st_mtime_ns, found.st_ctime_ns
    return [*map(str, (found.st_dev, found.st_ino, found.st_size, *times))]


def _note(path: Path) -> Path:
    """Where a file's digest is noted. AnsorError where there is no home."""
    return cache_folder("digests") / sha256(str(path.resolve()))
