"""Ctrl-C, SIGTERM and SIGHUP that nothing swallows, and that nothing makes wait.

Python raises KeyboardInterrupt in the main thread, wherever that happens to be. Where it is in a
callback of a C++ library, the library may make an error of its own of it, or print and drop it: so
that it was raised is noted, and asked for between two steps. Where a library is being loaded, which
may crash if it is left half made, nothing is raised until that has ended. Where it is in the
library itself, nothing is raised until that returns: then another thread does what must not be
left undone, and ends the process.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

PATIENCE = 1.5  # seconds for the main thread to end by itself
_AGAIN = 0.05  # seconds after which a main thread that was importing is interrupted again
_IMPORT = "<frozen importlib._bootstrap>"

_noted: list[type[KeyboardInterrupt]] = []
_postponed = threading.Event()
_undone: list[Callable[[], object]] = []


def interrupt(kind: type[KeyboardInterrupt], frame: FrameType | None) -> None:
    """Raise it, now or at the next `check`. frame: where the main thread is."""
    _noted.append(kind)
    if _is_importing(frame):
        _postponed.set()
    else:
        raise kind


def check() -> None:
    """Raise what was noted and has not come through."""
    if _noted:
        raise _noted[-1]


def forget() -> None:
    """Drop what was noted: it has come through."""
    _noted.clear()
    _postponed.clear()


@contextmanager
def in_any_case(undo: Callable[[], object]) -> Iterator[None]:
    """Call a function when the block ends, also where the process is ended within it by `watched`.

    It may be called twice, and in another thread.
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

    handled: such signals, which Python handles. end: is called with its number after all that is to
    be done in any case, and ends the process.
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
        os.close(sink)  # which ends the thread
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
    """Whether the main thread ends by itself; what it postponed is sent again."""
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
