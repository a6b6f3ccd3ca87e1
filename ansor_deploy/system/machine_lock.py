"""A lock that gives one process at a time this machine to itself."""

import errno
import fcntl
import os
import pwd
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .lock_file import open_lock

# A name in Linux's abstract namespace: it ends with its holder in any case, leaves no file behind,
# and is no path, so no link can redirect it. All users of the machine share it, as they share its
# cores, and the system itself reports its holder.
_NAME = "\0ansor-deploy-measures-here"
_POLL_SECONDS = 0.05  # between two tries
_SAY_SECONDS = 10.0  # of waiting before the first warning; doubled for each later one
# Limits the wait for other users, one of whom may keep the name for ever. A turn takes seconds.
_PATIENCE_SECONDS = 600.0
_CREDENTIALS = struct.Struct("3i")  # of a socket's peer: process, user, group
_BACKLOG = 128  # connections of those who ask for the holder


@contextmanager
def machine_lock(
    warn: Callable[[str], None] = lambda _: None, pause: Callable[[float], object] = time.sleep
) -> Iterator[None]:
    """Wait until no other process has the lock, and hold it while the block runs.

    Processes of another user are waited for ten minutes at most; after that, this user's processes
    only take turns among themselves. On a system without such names this does nothing.

    warn: called with a message about who has the lock, and how long this has waited. pause: called
    with the seconds between two tries; what it raises ends the wait.
    """
    with ExitStack() as held:
        lock = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        began, say, take = time.monotonic(), _SAY_SECONDS, lambda: _bound(lock)
        while not take():
            if (waited := time.monotonic() - began) >= say:
                say *= 2
                holder, goes_on = _holder(), "waiting for it"
                if not holder.trusted and waited >= _PATIENCE_SECONDS:
                    take, goes_on = lambda: _own(held), "measuring beside it: times may suffer"
                warn(f"{holder.name} measures on this machine; {goes_on} ({waited:.0f} s so far)")
            pause(_POLL_SECONDS)
        yield


@dataclass(frozen=True)
class _Holder:
    """The holder of the lock.

    trusted: a process of this user or of root, which will give it back.
    """

    name: str
    trusted: bool


def _holder() -> _Holder:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(_NAME)
        except OSError:  # a holder that does not listen, unlike ours, or is gone by now
            return _Holder("another process", False)
        found = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(found)
    return _Holder(f"process {process} of {_user(user)}", user in (os.geteuid(), 0))


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _bound(lock: socket.socket) -> bool:
    try:
        with suppress(FileNotFoundError, PermissionError):
            lock.bind(_NAME)
            lock.listen(_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise
    return True


def _own(held: ExitStack) -> bool:
    """Try to take this user's own lock; True if it is held now, or cannot exist.

    It cannot exist where there is no folder for its file.
    """
    folder = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    try:
        lock = open_lock(Path(folder, "ansor-deploy.lock"))
    except OSError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    held.callback(os.close, lock)
    return True
