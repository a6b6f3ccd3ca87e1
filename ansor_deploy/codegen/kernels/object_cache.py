"""Object files in the user's cache, keyed by everything they are made from, for later builds.

An entry is written whole or not at all, and carries its checksum. So processes can share the folder
without a lock, and a damaged entry costs another compilation, and nothing else.
"""

import errno
import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from ... import __version__
from ..._tvm import VERSION, tvm_target
from ...errors import AnsorError, UsageError
from ...system.atomic_file import write_whole
from ...system.digest import canonical_json, file_sha256, sha256
from ...system.environment import cache_folder, version
from ...target import Target

MOST_BYTES = 1 << 29  # of all entries together: ten thousand kernels or more
_DIGEST_BYTES = 32
_UNFINISHED_SECONDS = 3600.0  # an unfinished file of a killed process is removed after that
# How many bytes each folder has, as this process found it when it looked, with what it put since.
# What others put meanwhile is found by those that look next: each process looks once at least.
_known: dict[Path, int] = {}


class ObjectCache:
    """Object files of programs for a target, below `$XDG_CACHE_HOME`.

    warn: called with a sentence where the folder cannot be used.
    """

    def __init__(self, target: Target, warn: Callable[[str], None]) -> None:
        self._target, self._warn = str(tvm_target(target)), warn
        self._changed = False
        self._folder: Path | None = None
        try:
            self._folder = cache_folder("objects")
        except UsageError:  # without a home folder, a build works without a cache
            pass
        except AnsorError as error:
            warn(f"compiled kernels are not kept: {error.message}")

    def get(self, symbol: str, program: str) -> bytes | None:
        """The object file of a program under a symbol; None where there is no intact one."""
        if (path := self._path(symbol, program)) is None:
            return None
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if hashlib.sha256(code).digest() != digest:
            return None
        with suppress(OSError):
            os.utime(path)  # the least recently used entries are removed first
        return code

    def put(self, symbol: str, program: str, code: bytes) -> None:
        """Keep the object file of a program under a symbol."""
        if (path := self._path(symbol, program)) is None:
            return
        try:
            write_whole(path, hashlib.sha256(code).digest() + code, durable=False)
            self._changed = True
            if path.parent in _known:
                _known[path.parent] += len(code) + _DIGEST_BYTES
        except OSError as error:
            if error.errno != errno.EROFS:  # as in a sandbox, where nothing is to be mended
                self._warn(f"compiled kernels cannot be kept in {path.parent}: {error.strerror}")
            self._folder = None

    def trim(self) -> None:
        """Remove the least recently used entries while all are too large together."""
        if self._folder is None or not self._changed:
            return
        if _known.get(self._folder, MOST_BYTES + 1) > MOST_BYTES:
            with suppress(OSError):
                _known[self._folder] = _trim(self._folder)

    def _path(self, *words: str) -> Path | None:
        key = canonical_json([_generator(), self._target, *words])
        return self._folder / sha256(key) if self._folder else None


@cache
def _generator() -> list[str]:
    """The code that turns a program into an object file: its versions, and digests of its files."""
    room = Path(__file__).parents[1]
    files = sorted([*room.rglob("*.py"), *room.with_name("marks").glob("*.py")])
    return [__version__, VERSION, version("apache-tvm-ffi"), *map(file_sha256, files)]


def _trim(folder: Path) -> int:
    """Remove what is too much; how many bytes are left."""
    found = []
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):  # another process may have removed it
            found.append((entry.stat().st_mtime, entry.stat().st_size, entry.path, entry.name))
    total = sum(size for _, size, *_ in found)
    now = time.time()
    for changed, size, path, name in sorted(found):
        unfinished = name.startswith(".") and now - changed > _UNFINISHED_SECONDS
        if total > MOST_BYTES or unfinished:
            Path(path).unlink(missing_ok=True)
            total -= size
    return total
