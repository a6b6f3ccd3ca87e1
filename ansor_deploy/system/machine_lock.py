"""One process at a time has this machine to itself."""

import errno
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# A name in Linux's abstract namespace: it goes with its holder, however that ends, and leaves no
# file behind. All users of the machine share it, as they share its cores.
_NAME = "\0ansor-deploy-measures-here"
_POLL_SECONDS = 0.05


@contextmanager
def machine_lock() -> Iterator[None]:
    """Wait until no other process has the lock, and hold it while the block runs.

    On a system without such names this does nothing.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        while not _taken(lock):
            time.sleep(_POLL_SECONDS)
        yield


def _taken(lock: socket.socket) -> bool:
    try:
        with suppress(FileNotFoundError, PermissionError):
            lock.bind(_NAME)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise
    return True
