"""Limits of what a child process takes of the machine."""

from __future__ import annotations

import contextlib
import resource
from functools import lru_cache
from pathlib import Path

_FILE_BYTES = 1 << 30  # beyond what any call writes; less than what printing fills in seconds
_MARGIN_BYTES = 1 << 30
_TIMES = 16


def confine() -> None:
    """Write no core files and no endless ones, and be the first to go where memory runs out."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    with contextlib.suppress(OSError):  # no Linux, or no /proc
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    _baseline()


def limit_memory(size: int) -> None:
    """From now on, allow 1 GiB and 16 times `size` bytes more than the process began with.

    size: of the data at hand, of which every thread may keep a copy at worst; the margin is for
    stacks and heaps of many threads. An allocation beyond it fails, in this process alone. Does
    nothing where the system does not say what is in use.
    """
    if baseline := _baseline():
        most = baseline + _MARGIN_BYTES + _TIMES * size
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


@lru_cache(maxsize=1)
def _baseline() -> int:
    """Bytes of private memory in use when it was first asked; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0
