"""Each thread of a run worker on a processor of its own.

A thread that waits for the others spins, so to the system it looks as busy as they are: of a
kernel's two threads both stood on one processor, beside an idle one, in one timing of seven.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from . import native

_ALLOWED = sorted(os.sched_getaffinity(0))


def use_cores(count: int) -> None:
    """As `native.use_cores`, each thread of the pool, and this one, to stay where it is put."""
    before = _threads()
    native.use_cores(count)
    threads = [os.getpid(), *sorted(_threads() - before)]
    if 1 < len(threads) <= len(_ALLOWED):
        _put((thread, [cpu]) for thread, cpu in zip(threads, _ALLOWED, strict=False))


def release() -> None:
    """Let every thread run where it may, as those of a library do that somebody uses."""
    _put((thread, _ALLOWED) for thread in _threads())


def _put(places: Iterable[tuple[int, list[int]]]) -> None:
    """Where it is forbidden they stay as they are, and so does one that has ended."""
    for thread, processors in places:
        with suppress(OSError):
            os.sched_setaffinity(thread, processors)


def _threads() -> set[int]:
    return {int(entry.name) for entry in Path("/proc/self/task").iterdir()}
