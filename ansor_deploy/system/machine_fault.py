"""Faults of this machine: what the system refuses whoever asks, and whatever was asked for.

They are nobody's data: where an error is taken for a fact about a program, a rule or a model, these
are raised first.
"""

import errno
import os
from pathlib import Path

from ..errors import MachineError

_SPACE = "free some, or name another place (TMPDIR, --output, --registry); the same command resumes"
_FILES = "end other programs, or raise the limit: ulimit -n 4096; the same command resumes"
_MEMORY = "end other programs, or use a machine with more memory; the same command resumes"

# What to do about each.
REMEDIES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EIO: "the disk or the network file system failed: see the system's log",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: "end other programs, or raise the limit of processes: ulimit -u",
}
_NO_MEMORY = "std::bad_alloc"  # what C++ makes of it, in TVM's words
_NO_THREAD = "can't start new thread"


def fault_of(error: BaseException) -> MachineError | None:
    """The fault that an exception means; None where the machine is not at fault."""
    if isinstance(error, MachineError):
        return error
    text = str(error)
    if isinstance(error, MemoryError) or _NO_MEMORY in text:
        return fault(errno.ENOMEM)
    if _NO_THREAD in text:
        return fault(errno.EAGAIN)
    if isinstance(error, OSError) and error.errno in REMEDIES:
        return fault(error.errno, error.filename)
    return None


def fault(number: int, path: str | bytes | None = None) -> MachineError:
    """The fault of an errno of `REMEDIES`. path: of the file that it is about."""
    file = Path(os.fsdecode(path)) if isinstance(path, (str, bytes)) else None
    return MachineError(os.strerror(number).lower(), REMEDIES[number], file)


def heed(error: BaseException) -> None:
    """Raise the fault that an exception means; do nothing where the machine is not at fault."""
    if (found := fault_of(error)) is not None:
        raise found from error
