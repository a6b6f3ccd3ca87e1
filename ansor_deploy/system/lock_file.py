"""A file to lock for one process at a time, which no other user can occupy."""

import os
import stat
from pathlib import Path


def open_lock(path: Path) -> int:
    """A descriptor of the lock file, which is created if needed.

    Its folder is one that only this user can write to. PermissionError where the name belongs to
    something else than a file of this user, such as a pipe; OSError for a link, which is not
    followed.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    raise PermissionError(f"{path} is no file of this user's")
