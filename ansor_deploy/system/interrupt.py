"""Interrupts by Ctrl-C, SIGTERM and SIGHUP that are neither lost nor delayed for long.

Python raises KeyboardInterrupt in the main thread, wherever that happens to be. In a callback of a
C++ library, the library may turn the exception into its own error, or print and drop it: so each
interrupt is noted, and `check` raises it between two steps. While a library is being imported,
which may crash if it is left half loaded, nothing is raised until the import has ended. While C++
code runs, Python cannot raise anything: then another thread calls the registered cleanup functions,
and ends the process.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

PATIENCE = 1.5  # seconds that the main thread has to end by itself
_AGAIN = 0.05  # seconds after which a thread that was importing is interrupted again
_IMPORT = "<frozen importlib._bootstrap>"

_noted: list[type[KeyboardInterrupt]] = []
_postponed = threading.Event()
_undone: list[Callable[[], object]] = []


def interrupt(kind: type[KeyboardInterrupt], frame: FrameType | None) -> None:
    """Raise an interrupt now or, during an import, later. frame: where the main thread is."""
    _noted.append(kind)
    if _is_importing(frame):
        _postponed.set()
    else:
        raise kind


def check() -> None:
    """Raise an interrupt that was noted and has not got through."""
    if _noted:
        raise _noted[-1]


def forget() -> None:
    """Drop the interrupts noted so far: they have got through."""
    _noted.clear()
    _postponed.clear()


@contextmanager
def in_any_case(undo: Callable[[], object]) -> Iterator[None]:
    """Call a function when the block ends, also where `watched` ends the process within the block.

    The function may be called twice, and in another thread.
    """
    _undone.append(undo)
    try:
        yield
    finally:
        undo()
        _undone.remove(undo)


@contextmanager
def watched(handled: Collection[int], end: Callable[[int], None]) -> Iterator[None]:
    """Within it, another thread handles a signal that the main thread does not handle in time.

    handled: the signals that this is for; Python has handlers for them. end: called with a signal's
    number after the functions of `in_any_case`; it ends the process.
    """
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    ended = threading.Event()
    before = signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    words = (source, handled, ended, end)
    watch = threading.Thread(target=_watch, args=words, name="ansor-deploy-signals", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(sink)  # ends the thread
        watch.join(PATIENCE)


def _watch(
    source: int, handled: Collection[int], ended: threading.Event, end: Callable[[int], None]
) -> None:
    with open(source, "rb", buffering=0) as numbers:
        while read := numbers.read(1):
            if read[0] in handled and not _ends_in_time(ended, read[0]):
                for undo in reversed(_undone):
                    with suppress(Exception):
                        undo()
                end(read[0])


def _ends_in_time(ended: threading.Event, number: int) -> bool:
    """Whether the main thread ends by itself; interrupts that imports postponed are sent again."""
    deadline = time.monotonic() + PATIENCE
    while not ended.wait(_AGAIN) and time.monotonic() < deadline:
        if _postponed.is_set():
            _postponed.clear()
            os.kill(os.getpid(), number)
    return ended.is_set()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False
