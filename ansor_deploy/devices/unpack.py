"""Unpack a bundle from stdin into its folder, whole or not at all. A board's Python runs this text.

    python3 -c TEXT CACHE DIGEST < bundle.tar.gz

DIGEST: SHA-256 of the tar archive, and the name of the folder. It ends with a nonzero status, and
the reason on stderr, where that folder cannot be made. The digest can be checked only after
everything has arrived; until then only plain files are made, and only in the folder.
"""

import fcntl
import gzip
import hashlib
import importlib.util
import marshal
import os
import shutil
import sys
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

LEFT = ".upload-"
MOST = 1 << 30  # bytes of an unpacked archive: ten times a bundle's size
KEPT = 3  # how many of the last used bundles are kept: hosts may have different versions


class Hashed:
    """A stream that computes the digest of what is read from it."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self.stream = stream
        self.digest = hashlib.sha256()
        self.left = MOST

    def read(self, count: int) -> bytes:
        """The next bytes; OSError where there are more than a bundle can have."""
        data = self.stream.read(count)
        self.digest.update(data)
        self.left -= len(data)
        if self.left < 0:
            raise OSError(f"it has more than {MOST >> 20} MiB")
        return data


def unpack(cache: Path, digest: str) -> None:
    """Unpack into a temporary folder, which is renamed once its digest is right."""
    cache.mkdir(parents=True, exist_ok=True)
    cache.chmod(0o700)
    with (cache / "upload.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{LEFT}*"):  # from interrupted uploads
            shutil.rmtree(left)
        if (cache / digest).is_dir():
            return
        made = cache / (LEFT + digest)
        try:
            fill(made, digest)
            compile_all(made)
            os.sync()  # so that a power cut cannot leave the name without the files
            made.rename(cache / digest)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        for old in by_last_use(cache)[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)


def by_last_use(cache: Path) -> list[Path]:
    """The bundles, the last used first; an agent touches the folder that it runs from."""
    bundles = [path for path in cache.iterdir() if len(path.name) == 64]
    return sorted(bundles, key=lambda path: path.stat().st_mtime, reverse=True)


def fill(folder: Path, digest: str) -> None:
    """Extract stdin into a folder; OSError where it is not the right bundle."""
    stream: Any = Hashed(gzip.GzipFile(fileobj=sys.stdin.buffer))
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            place = folder / plain_name(entry)
            content: Any = archive.extractfile(entry)
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as file:
                shutil.copyfileobj(content, file)
    while stream.read(1 << 20):
        pass
    if stream.digest.hexdigest() != digest:
        raise OSError("the bundle was damaged on its way")


def plain_name(entry: tarfile.TarInfo) -> str:
    """The path of a plain file of a bundle in its folder; OSError for any other entry."""
    path = PurePosixPath(entry.name)
    if not entry.isreg() or entry.issparse() or path.is_absolute() or ".." in path.parts:
        raise OSError(f"{entry.name[:80]!a} is no plain file of a bundle")
    return entry.name


def compile_all(folder: Path) -> None:
    """Write the bytecode of every module, with its source's hash, by which Python validates it.

    Otherwise imports would write it, and before Python 3.13.2 they leave half of it on a full disk
    (importlib's `_write_atomic`), after which no import works. Agents are started with `-B`.
    """
    for path in folder.rglob("*.py"):
        source = path.read_bytes()
        code = compile(source, path, "exec", dont_inherit=True)
        head = importlib.util.MAGIC_NUMBER + b"\3\0\0\0" + importlib.util.source_hash(source)
        cached = Path(importlib.util.cache_from_source(str(path)))
        cached.parent.mkdir(exist_ok=True)
        cached.write_bytes(head + marshal.dumps(code))


try:
    unpack(Path(sys.argv[1]), sys.argv[2])
except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
    sys.exit(str(error))
finally:
    while sys.stdin.buffer.read(1 << 20):  # read it all, so that the sender gets the reason
        pass
