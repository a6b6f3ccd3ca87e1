"""Make's jobserver: use as many threads as `make -j` has jobs to spare.

A process that make runs may keep one processor busy. For each further one it takes a token, a byte,
out of make's pipe or named pipe, and puts the same byte back ("POSIX Jobserver" in the manual of
GNU make). It does not wait for tokens that are not there.
"""

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .interrupt import in_any_case

_AUTH = re.compile(r"--jobserver-(?:auth|fds)=(?:fifo:(?P<path>(?:\\.|\S)+)|(?P<ends>\d+,\d+))")


@contextmanager
def threads(wanted: int) -> Iterator[int]:
    """The number of threads to use within the block: as many as wanted, or as make has to spare.

    The tokens are given back in any case, unless the process is killed.
    """
    auth = list(_AUTH.finditer(os.environ.get("MAKEFLAGS", "")))
    if not auth:
        yield wanted
        return
    with _opened(auth[-1]) as (source, sink):
        # The kernel writes the tokens into this buffer, where cleanup finds them after any
        # interrupt.
        tokens = bytearray(max(0, wanted - 1))

        def give_back() -> None:
            if taken := tokens.rstrip(b"\0"):
                tokens[:] = bytes(len(tokens))
                os.write(sink, taken)

        with in_any_case(give_back):
            with suppress(OSError):  # no token is free, or make withholds its pipe
                os.readv(source, [tokens])
            yield 1 + len(tokens.rstrip(b"\0"))


@contextmanager
def _opened(auth: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The two ends of the jobserver, opened without blocking; (-1, -1) where there is none."""
    opened: list[int] = []
    try:
        with suppress(OSError):
            source, sink = _places(auth)
            opened.append(os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            opened.append(os.open(sink, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        yield (opened[0], opened[1]) if len(opened) == 2 else (-1, -1)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _places(auth: re.Match[str]) -> tuple[str, str]:
    """The paths to read from and to write to; OSError where there is no jobserver.

    A pipe is opened again through /proc: blocking is a property of each opening, and make's own
    must stay blocking.
    """
    if auth["path"]:
        path = re.sub(r"\\(.)", r"\1", auth["path"])
        return path, path
    ends = [int(number) for number in auth["ends"].split(",")]
    found = [os.fstat(number) for number in ends]
    modes = [fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE for number in ends]
    # Where make withholds its pipe from a recipe, these descriptors may be any other files.
    one_pipe = all(stat.S_ISFIFO(end.st_mode) for end in found)
    one_pipe = one_pipe and found[0].st_ino == found[1].st_ino
    if not one_pipe or modes != [os.O_RDONLY, os.O_WRONLY]:
        raise BlockingIOError
    return f"/proc/self/fd/{ends[0]}", f"/proc/self/fd/{ends[1]}"
