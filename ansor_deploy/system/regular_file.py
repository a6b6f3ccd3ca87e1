"""Bounded reading of files that a user names: no devices or pipes, which may never end."""

import errno
import os
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading; OSError if it is not a regular one: others may block or not end."""
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file; OSError if it is not regular, or longer than `most` bytes.

    What is appended while it is read is ignored.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise OSError(errno.EINVAL, f"it has more than {most >> 10} KiB", str(path))
        return stream.read(size)
