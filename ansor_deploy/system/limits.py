"""What a process lets itself take of the machine."""

import contextlib
import math
import mmap
import resource
from functools import cache
from pathlib import Path

_FILE_BYTES = 1 << 30  # beyond what any call writes; less than what printing fills in seconds
_MARGIN_BYTES = 1 << 30
_TIMES = 16
_limited: set[int] = set()  # what this process has limited itself


def go_first() -> None:
    """Be the first process to go where memory runs out."""
    with contextlib.suppress(OSError):  # no Linux, or no /proc
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def confine() -> None:
    """Write no core files and no endless ones."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _baseline()


def limit_memory(size: int) -> None:
    """From now on, allow 1 GiB and 16 times `size` bytes more than the process began with.

    size: of the data at hand, of which every thread may keep a copy at worst; the margin is for
    stacks and heaps of many threads. An allocation beyond it fails, in this process alone. Does
    nothing where the system does not say what is in use.
    """
    if baseline := _baseline():
        most = baseline + _MARGIN_BYTES + _TIMES * size
        _limit(resource.RLIMIT_DATA, most)


def limit_processor(seconds: float) -> None:
    """From now on, allow so many seconds of processor time; then the system ends the process.

    How busy the machine is does not matter: on a loaded one the limit is the same.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))


def _limit(what: int, most: int) -> None:
    """Set a limit of this process's own; one that the user has set stays the most."""
    _limited.add(what)
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def own_limit_reached() -> bool:
    """Where memory was refused: whether `limit_memory` did, and the machine would have given it."""
    return resource.RLIMIT_DATA in _limited and _has_room()


def _has_room() -> bool:
    """Whether the machine would give this process another gigabyte of addresses."""
    with contextlib.suppress(OSError):
        mmap.mmap(-1, _MARGIN_BYTES, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE).close()
        return True
    return False


def address_space_is_short() -> bool:
    """Whether the user has limited the address space (`ulimit -v`), and little is left of it."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY and not _has_room()


@cache
def _baseline() -> int:
    """Bytes of private memory in use when it was first asked; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0
