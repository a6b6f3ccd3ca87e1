"""Files that appear complete or not at all, and a lock for one process at a time."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from .machine_fault import about

_PATIENCE = 10.0  # seconds to wait for a lock
_POLL = 0.02  # seconds between two tries


def write_whole(path: Path, content: bytes, mode: int = 0o666, *, durable: bool = True) -> None:
    """Write a file under another name and move it to its place; a failure leaves the old content.

    The folder is created if needed, for whom may read and write the file. mode: the permissions of
    a new file, which the umask reduces.
    durable: sync to disk first, so that a power cut leaves the old content or the new.
    """
    with writing_whole(path, mode, durable=durable) as stream:
        stream.write(content)


@contextmanager
def writing_whole(path: Path, mode: int = 0o666, *, durable: bool = True) -> Iterator[BinaryIO]:
    """As `write_whole`, but gives a stream, to which the content is written piece by piece."""
    path.parent.mkdir(mode | (mode & 0o444) >> 2, parents=True, exist_ok=True)
    unfinished = unfinished_name(path)
    try:
        with about(path, unfinished):
            with open(unfinished, "xb", opener=partial(os.open, mode=mode)) as stream:
                yield stream
                stream.flush()
                if durable:  # after a power cut, the name must not stand for an incomplete file
                    os.fsync(stream.fileno())
            unfinished.replace(path)
    finally:
        with suppress(OSError):  # a read-only file system says more about the file itself
            unfinished.unlink()


def unfinished_name(path: Path) -> Path:
    """A name for what shall become a file, in its folder and hidden.

    It is random: containers that share a folder number their processes alike.
    """
    return path.with_name(f".{path.name}.{os.urandom(4).hex()}")


@contextmanager
def held(folder: Path, patience: float = _PATIENCE) -> Iterator[None]:
    """Wait for a folder's lock, and hold it. The lock ends with its process, in whatever way.

    It is held for moments; after `patience` seconds the block runs without it. Whoever keeps it for
    so long may itself wait for this process, as in `flock out make`, or be any user who may read
    the folder. On a file system without locks this does nothing.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            deadline = time.monotonic() + patience
            while not _locked(descriptor) and time.monotonic() < deadline:
                time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Try to lock an open folder; OSError where its file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
