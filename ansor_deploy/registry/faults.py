"""Translate SQLite's errors: what each means to the user, and what to do about it."""

import errno
import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import AnsorError, RegistryError, UsageError
from ..system.limits import file_limit
from ..system.machine_fault import fault, fault_of, raise_if_fault

# The hint where nothing of a file can be saved.
OTHERWISE = (
    "Restore a backup with `ansor-deploy registry restore`, or move the file away and let the next "
    "build start a new one."
)

ASK_FOR_A_BUNDLE = "Ask for a bundle: `ansor-deploy registry export` where it was made."

# A part of SQLite's message: (what went wrong, what to do next).
_MEANINGS = {
    "locked": (
        "is in use by {holder}",
        "Wait until it has ended, or end it, and try again{unless}.",
    ),
    "moved": (
        "was moved, removed or replaced while it was in use",
        "Repeat the command; what was measured before is in the file that was moved.",
    ),
    "readonly": ("is not writable", "Check the permissions of the file and of its folder."),
    "unable to open": ("cannot be opened", "Check the path, its folder and their permissions."),
    "interrupted": ("is refused: it takes too long to read", ASK_FOR_A_BUNDLE),
    "too big": ("is refused: a value in it is too large", ASK_FOR_A_BUNDLE),
}

# SQLite says the same where a file system refuses locks.
_UNLESS = (
    "; if none has it, here or on another machine, its file system has no locks, as NFS may have "
    "none: place it elsewhere (--registry)"
)

# A part of SQLite's message about a file that is not as it was written: what is wrong with it.
_DAMAGES = {
    "malformed": "it is not whole",
    "UTF-8": "it holds bytes that are not text",
    "not a database": "it is not a registry",
    "no such": "it lacks a part",  # a table or a column
}

# A part of SQLite's message about a fault of the machine: its errno.
_FAULTS = {"is full": errno.ENOSPC, "disk I/O": errno.EIO, "out of memory": errno.ENOMEM}
_TRANSACTION = 64 << 20  # bytes that a file may grow by in one


class DamagedError(RegistryError):
    """The file is not as it was written, though parts of it may be intact.

    what: the fault, without the file's name.
    """

    def __init__(self, path: Path, what: str, hint: str = "") -> None:
        """The error of the registry at `path`. hint: by default how to save the intact parts."""
        super().__init__(f"the registry {path} is damaged: {what}", hint or _saving(path))
        self.what = what


def _saving(path: Path) -> str:
    """The hint for a file that may have intact parts."""
    repair = f"`ansor-deploy registry verify --repair --registry {shlex.quote(str(path))}`"
    return f"Save what is whole with {repair}. {OTHERWISE}"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the errors that a registry file can cause into RegistryErrors that name the file.

    MachineError where the machine is at fault, UsageError for text that no file can hold. A
    violated constraint is a bug of the caller and passes through.
    """
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.Error as error:
        moved = getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY_DBMOVED"  # Python 3.11
        raise _explain(path, "it was moved" if moved else str(error)) from error
    except UnicodeDecodeError as error:  # SQLite quotes bytes of the file in its message
        raise DamagedError(path, "it holds bytes that are not text") from error
    except UnicodeEncodeError as error:  # a word of the command line, with half of a surrogate pair
        hint = "a registry holds nothing but UTF-8: look for something else"
        raise UsageError(f"{str(error.object)!a} is no UTF-8", hint) from error
    except MemoryError as error:
        raise fault(errno.ENOMEM, str(path)) from error
    except OSError as error:
        raise_if_fault(error)
        hint = "Check the path and its permissions, or name another place: --registry."
        raise RegistryError(f"the registry {path}: {error.strerror}", hint) from error


def in_use(path: Path) -> AnsorError:
    """The error of a file that another process has locked."""
    return _explain(path, "database is locked")


def _explain(path: Path, message: str) -> AnsorError:
    for part, number in _FAULTS.items():
        if part in message:
            too_large = number == errno.EIO and _is_at_its_limit(path)
            return fault(errno.EFBIG if too_large else number, str(path))
    if "unable to open" in message and (found := _no_descriptor()):
        return found
    for part, what in _DAMAGES.items():
        if part in message:
            return DamagedError(path, f"{what} ({message})")
    for part, (problem, hint) in _MEANINGS.items():
        if part in message:
            holder = _holder(path)
            what = problem.format(holder=holder or "another process")
            next_step = hint.format(unless="" if holder else _UNLESS)
            return RegistryError(f"the registry {path} {what} ({message})", next_step)
    return RegistryError(f"the registry {path} cannot be used: {message}", _saving(path))


def _is_at_its_limit(path: Path) -> bool:
    """Whether a transaction may have been too large for `ulimit -f`: SQLite calls that a disk's."""
    size = path.stat().st_size if path.exists() else 0
    return size + _TRANSACTION > file_limit()


def _no_descriptor() -> AnsorError | None:
    """The fault of a process that can open no file at all, which SQLite does not distinguish."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return fault_of(error)
    return None


def _holder(path: Path) -> str:
    """The process that holds a lock on the file, as far as Linux knows it; else ""."""
    try:
        inode = str(path.stat().st_ino)
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if words[5].split(":")[-1] == inode:
                name = Path(f"/proc/{words[4]}/comm").read_text(encoding="utf-8").strip()
                return f"process {words[4]} ({name})"
    except (OSError, ValueError, IndexError):
        pass  # another system, or the process has just ended
    return ""
