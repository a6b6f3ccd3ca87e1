"""The three streams of a process, whatever the caller left of them.

One that is closed becomes the null device, or the next file that is opened would take its place: a
registry would get the messages. So does a stdout or stderr that is open for reading alone. Messages
that nobody can read any more are dropped, and the work goes on: a terminal that hung up, a pipe
without a reader, a full disk.
"""

import fcntl
import io
import os
import select
import sys
from contextlib import suppress
from typing import Any


def open_streams() -> None:
    """Give the process all three. A letter that an encoding lacks is no failure."""
    for descriptor in range(3):
        if not _serves(descriptor):
            null = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
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
    """Drop what stdout could not take: the interpreter's own last flush would fail on it."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout.fileno())


def reader_has_left() -> bool:
    """Whether stdout is a pipe that nobody reads any more."""
    pipe = select.poll()
    pipe.register(1, 0)
    return any(event & select.POLLERR for _, event in pipe.poll(0))


class _Messages(io.FileIO):
    """Takes whatever is written; once that fails, to no effect."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        try:
            written = super().write(data)
        except OSError:
            _silence(self.fileno())
            return len(data)
        return len(data) if written is None else written  # none: a full pipe that must not wait


def _serves(descriptor: int) -> bool:
    """Whether a standard stream is open, and for writing if it is not the first."""
    try:
        access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        return False
    return descriptor == 0 or access != os.O_RDONLY


def _silence(descriptor: int) -> None:
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
