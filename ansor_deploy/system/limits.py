"""Limits that a process sets on its own use of the machine."""

import contextlib
import math
import mmap
import resource
from functools import cache
from pathlib import Path

_FILE_BYTES = 1 << 30  # more than any call writes, and less than endless printing writes in seconds
_MARGIN_BYTES = 1 << 30  # for stacks and heaps of threads
_TIMES = 16  # how many times the data's size is allowed
_limits: dict[int, int] = {}  # that this process has set itself


def go_first() -> None:
    """Let the system kill this process before others when memory runs out."""
    with contextlib.suppress(OSError):  # not Linux, or no /proc
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def confine() -> None:
    """Allow no core files, and files of at most 1 GiB."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _baseline()


def limit_files(size: int) -> None:
    """Allow files of at most so many bytes until this process ends; a write beyond that fails."""
    _limit(resource.RLIMIT_FSIZE, size)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def allow_large_files() -> None:
    """Take back the limit of files that `confine` has set, for a call that writes a model."""
    _limits.pop(resource.RLIMIT_FSIZE, None)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def limit_memory(size: int) -> None:
    """From now on, allow 1 GiB and 16 times `size` bytes more than the process began with.

    size: that of the data at hand; at worst, every thread keeps a copy. The GiB is for the stacks
    and heaps of many threads. An allocation beyond the limit fails, in this process alone. Does
    nothing where the system does not report the memory in use.
    """
    if baseline := _baseline():
        most = baseline + _MARGIN_BYTES + _TIMES * size
        _limit(resource.RLIMIT_DATA, most)


def limit_processor(seconds: float) -> None:
    """From now on, allow so many seconds of processor time; then the system ends the process.

    Processor time does not depend on how busy the machine is.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))


def _limit(what: int, most: int) -> None:
    """Set one of this process's limits, at most as high as the user's own limit."""
    _limits[what] = most
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def own_limit_reached() -> bool:
    """Whether a refused allocation was refused by `limit_memory`, and not by the machine.

    Asked after an allocation has failed.
    """
    return resource.RLIMIT_DATA in _limits and _has_room()


def own_file_limit_reached() -> bool:
    """Whether a file was refused for its size by this process's own limit, not by the machine.

    Asked after a write has failed.
    """
    return _limits.get(resource.RLIMIT_FSIZE) == file_limit()


def file_limit() -> float:
    """The bytes that a file may have (`ulimit -f`); infinite without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _has_room() -> bool:
    """Whether the machine would give this process another gigabyte of addresses."""
    with contextlib.suppress(OSError):
        mmap.mmap(-1, _MARGIN_BYTES, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE).close()
        return True
    return False


def address_space_is_short() -> bool:
    """Whether the user limits the address space (`ulimit -v`), and little is left of it."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY and not _has_room()


@cache
def _baseline() -> int:
    """The bytes of private memory in use at the first call; 0 where the system reports none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0
