"""Pin each thread of a run worker to a processor of its own.

A thread that waits for the others spins, so to the system it looks as busy as they are: in one
timing of seven, both threads of a kernel ran on one processor, beside an idle one.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from . import native

_ALLOWED = sorted(os.sched_getaffinity(0))


def use_cores(count: int) -> None:
    """Call `native.use_cores`, and pin each thread of the pool, and this one, to a processor."""
    before = _threads()
    native.use_cores(count)
    threads = [os.getpid(), *sorted(_threads() - before)]
    if 1 < len(threads) <= len(_ALLOWED):
        _pin((thread, [cpu]) for thread, cpu in zip(threads, _ALLOWED, strict=False))


def release() -> None:
    """Let every thread run on any processor again, as in any process that uses a library."""
    _pin((thread, _ALLOWED) for thread in _threads())


def _pin(pins: Iterable[tuple[int, list[int]]]) -> None:
    """Pin threads to processors; one that has ended, or may not be pinned, is skipped."""
    for thread, processors in pins:
        with suppress(OSError):
            os.sched_setaffinity(thread, processors)


def _threads() -> set[int]:
    return {int(entry.name) for entry in Path("/proc/self/task").iterdir()}
