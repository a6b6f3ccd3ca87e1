"""Reading files that somebody named: no device and no pipe, which may never end, and bounded."""

import errno
import os
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading; OSError if it is no regular file, where others wait or never end."""
    # Without O_NONBLOCK a pipe would keep whoever opens it until somebody writes.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes; OSError if it is another.

    What is written to it meanwhile is not waited for.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise OSError(errno.EINVAL, f"it has more than {most >> 10} KiB", str(path))
        return stream.read(size)
