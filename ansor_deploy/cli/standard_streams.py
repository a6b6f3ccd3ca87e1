"""Make the three standard streams usable, however the caller has left them.

A closed stream becomes the null device; otherwise the next file that is opened, such as a registry,
would take its number and receive the messages. The same holds for a stdout or stderr that is open
for reading alone. Messages that nobody can read any more are dropped, and the work goes on: after a
terminal hung up, a pipe lost its reader, or a disk became full.
"""

import fcntl
import io
import os
import select
import sys
from contextlib import suppress
from typing import Any


def open_streams() -> None:
    """Open all three streams. Characters that the encoding lacks are escaped, and do not fail."""
    for descriptor in range(3):
        if not _serves(descriptor):
            null = os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            os.set_inheritable(descriptor, True)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        messages: Any = io.BufferedWriter(_Messages(2, "w", closefd=False))
        encoding = getattr(sys.stderr, "encoding", "utf-8")
        sys.stderr = io.TextIOWrapper(messages, encoding, line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def finish_stdout() -> None:
    """Drop what stdout could not write, as the interpreter's last flush would fail on it."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout.fileno())


def reader_has_left() -> bool:
    """Whether stdout is a pipe without a reader."""
    pipe = select.poll()
    pipe.register(1, 0)
    return any(event & select.POLLERR for _, event in pipe.poll(0))


class _Messages(io.FileIO):
    """A file for messages: once a write fails, it discards everything."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        try:
            written = super().write(data)
        except OSError:
            _silence(self.fileno())
            return len(data)
        return len(data) if written is None else written  # None: a full pipe that does not block


def _serves(descriptor: int) -> bool:
    """Whether a descriptor is open, and can be written to if it is stdout or stderr."""
    try:
        access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        return False
    return descriptor == 0 or access != os.O_RDONLY


def _silence(descriptor: int) -> None:
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
