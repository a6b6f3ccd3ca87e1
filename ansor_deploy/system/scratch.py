"""A temporary folder that is removed after its run, even after one that was killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "ansor-deploy-measure-"
_GRACE_SECONDS = 60.0  # age from which on unlocked folders go: a new one is not locked yet


class Scratch:
    """An empty folder, locked while this process lives; it also removes folders of dead processes.

    path: the folder, which `close` removes.
    """

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path, os.O_RDONLY)
        with contextlib.suppress(OSError):  # a file system without locks, where nobody sweeps
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder and its content. May be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _sweep(parent: Path) -> None:
    """Remove this user's folders that no living process has locked."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # locked, removed meanwhile, or another user's
            found = folder.lstat()
            if found.st_uid == os.getuid() and time.time() - found.st_mtime >= _GRACE_SECONDS:
                remove_unheld(folder)


def remove_unheld(folder: Path) -> None:
    """Remove a folder that no process has locked; OSError where one has, or it is no folder."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
