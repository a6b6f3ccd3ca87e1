"""Files that appear complete or not at all, and a lock for one process at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from .machine_fault import about


def write_whole(path: Path, content: bytes, mode: int = 0o666, *, durable: bool = True) -> None:
    """Write a file under another name and move it to its place; a failure leaves the old content.

    The folder is created if needed. mode: the permissions of a new file, which the umask reduces.
    durable: sync to disk first, so that a power cut leaves the old content or the new.
    """
    with writing_whole(path, mode, durable=durable) as stream:
        stream.write(content)


@contextmanager
def writing_whole(path: Path, mode: int = 0o666, *, durable: bool = True) -> Iterator[BinaryIO]:
    """As `write_whole`, but gives a stream, to which the content is written piece by piece."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with about(path), open(unfinished, "wb", opener=partial(os.open, mode=mode)) as stream:
            yield stream
            stream.flush()
            if durable:  # after a power cut, the name must not stand for an incomplete file
                os.fsync(stream.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Wait for a folder's lock, and hold it. The lock ends with its process, in whatever way.

    On a file system without locks this does nothing.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
