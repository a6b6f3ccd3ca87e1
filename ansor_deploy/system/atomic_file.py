"""Files that appear whole or not at all, and one process at a time that changes them."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from .machine_fault import about


def write_whole(path: Path, content: bytes, mode: int = 0o666, *, durable: bool = True) -> None:
    """Write a file beside its place and move it there; a failure leaves what was there before.

    Its folder is made where there is none. mode: the permissions of a new file, less those that the
    umask takes away. durable: a power cut cannot leave less than all of it, either.
    """
    with writing_whole(path, mode, durable=durable) as stream:
        stream.write(content)


@contextmanager
def writing_whole(path: Path, mode: int = 0o666, *, durable: bool = True) -> Iterator[BinaryIO]:
    """As `write_whole`, but what is written comes piece by piece."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with about(path), open(unfinished, "wb", opener=partial(os.open, mode=mode)) as stream:
            yield stream
            stream.flush()
            if durable:  # the name must not survive a power cut that this does not
                os.fsync(stream.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Wait for a folder's lock, and hold it; it goes with its process, however that ends.

    On a file system without locks this does nothing.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
