"""Agreement between pytest-xdist's processes: which tests run together, and what is made once."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest


@contextmanager
def turn(item: pytest.Item) -> Iterator[None]:
    """Run a test beside those of other processes, or by itself if it is marked `alone`.

    Every test enters through a gate. A test that runs alone keeps the gate closed while it waits
    for the others to end, so that none begins meanwhile.
    """
    with ExitStack() as room:
        if hasattr(item.config, "workerinput"):
            shared = item.config._tmp_path_factory.getbasetemp().parent
            kind = fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH
            with locked(shared / "gate"):
                room.enter_context(locked(shared / "room", kind))
        yield


@contextmanager
def locked(path: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the lock of a file, for which other processes wait."""
    with path.open("w") as lock:
        fcntl.flock(lock, kind)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a forked child has the file open, too


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that one process of a run fills, and that all of them read."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = shared / name, shared / f"{name}.made"
    with locked(shared / f"{name}.lock"):
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
