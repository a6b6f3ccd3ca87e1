"""A loaded library that the threads and forked children of a process share until it is closed."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from ..errors import UsageError

Self = TypeVar("Self", bound="Shared")
Opened = tuple[int, list[Any], Callable[[int], None]]  # the result of `into_functions`


class Shared:
    """A library whose functions one thread at a time may run.

    code: the number of its code that runs. opened: loads it.
    """

    def __init__(self, path: Path, opened: Callable[[], Opened]) -> None:
        self.path, self._opened = path, opened
        self.code, self._functions, self._use_threads = opened()
        self._running = threading.Lock()
        _LOADED.add(self)

    def _in_turn(
        self, chosen: int, given: Sequence[np.ndarray], made: Sequence[np.ndarray]
    ) -> None:
        """Run a function once no other thread runs one; UsageError where the library is closed."""
        with self._running:
            if not self._functions:
                _, self._functions, self._use_threads = self._opened()
                self._use_threads(1)
            self._functions[chosen](given, made)

    def close(self) -> None:
        """Free weights and memory after the running call; no further calls are possible.

        The code stays loaded, since threads of the process may be in it.
        """
        with self._running:
            self._functions, self._use_threads, self._opened = [], _no_threads, self._refuse

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - it has to do with NumPy alone
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def forked(self) -> None:
        """Continue in a forked child, which has no other threads.

        If another thread was running the library during the fork, its state is lost: the next call
        loads the library anew.
        """
        if self._running.locked():
            self._functions, self._running = [], threading.Lock()
        self._use_threads(1)

    def _refuse(self) -> Opened:
        raise UsageError("it is closed", "load it again", self.path)


_LOADED: WeakSet[Shared] = WeakSet()


def _no_threads(count: int) -> None:
    """Set no threads: the library is closed."""


def _forked() -> None:
    for library in list(_LOADED):
        library.forked()


os.register_at_fork(after_in_child=_forked)
