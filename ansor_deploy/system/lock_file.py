"""A file that stands for what one process at a time may have, and that no other user can take."""

import os
import stat
from pathlib import Path


def open_lock(path: Path) -> int:
    """A descriptor of the file, which is made if it is not there.

    It lies in a folder that this user alone may write to. PermissionError where the name is taken
    by what is no file of this user's, such as a pipe; OSError for a link, which is not followed.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    raise PermissionError(f"{path} is no file of this user's")
