"""A loaded library that threads and children of the process share, until it is closed."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from ..errors import UsageError

Self = TypeVar("Self", bound="Shared")
Opened = tuple[int, list[Any], Callable[[int], None]]  # as `into_functions` gives them


class Shared:
    """A library, of which one thread at a time runs a function.

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
        """Run a function, once no other thread does; UsageError where it is closed."""
        with self._running:
            if not self._functions:
                _, self._functions, self._use_threads = self._opened()
                self._use_threads(1)
            self._functions[chosen](given, made)

    def close(self) -> None:
        """Give weights and memory back, after a call that runs; none is possible any more.

        The code stays where it is: threads of the process may be in it.
        """
        with self._running:
            self._functions, self._use_threads, self._opened = [], _no_threads, self._refuse

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - it has to do with NumPy alone
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def forked(self) -> None:
        """Go on in a child process, where no thread is that ran it, or helped.

        What such a thread left half done is no use: the next call loads the library anew.
        """
        if self._running.locked():
            self._functions, self._running = [], threading.Lock()
        self._use_threads(1)

    def _refuse(self) -> Opened:
        raise UsageError("it is closed", "load it again", self.path)


_LOADED: WeakSet[Shared] = WeakSet()


def _no_threads(count: int) -> None:
    """The threads of what is closed."""


def _forked() -> None:
    for library in list(_LOADED):
        library.forked()


os.register_at_fork(after_in_child=_forked)
