"""Faults of this machine: what the system refuses whoever asks, and whatever was asked for.

They are nobody's data: where an error is taken for a fact about a program, a rule or a model, these
are raised first.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import AnsorError, MachineError
from .limits import address_space_is_short, own_limit_reached

RESUMES = "what was measured is kept: the same command resumes"
_SPACE = f"free some, or name another place (TMPDIR, --output, --registry); {RESUMES}"
_FILES = f"end other programs, or raise the limit: ulimit -n 4096; {RESUMES}"
_MEMORY = f"end other programs, or use a machine with more memory; {RESUMES}"

# What to do about each.
REMEDIES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EIO: f"the disk or the network file system failed: see the system's log; {RESUMES}",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: f"end other programs, or raise the limit of processes: ulimit -u; {RESUMES}",
}
# How compilers, linkers and libraries word them, where there is no errno any more.
_PHRASES = {
    **{os.strerror(number): number for number in REMEDIES},
    "std::bad_alloc": errno.ENOMEM,
    "can't start new thread": errno.EAGAIN,
}
_NO_CODE = "failed to map segment from shared object"  # a loader's, below a folder without `exec`
_NO_FOLDER = "No usable temporary directory"  # Python's


def fault_of(error: BaseException) -> MachineError | None:
    """The fault that an exception means; None where the machine is not at fault."""
    if isinstance(error, AnsorError):
        return error if isinstance(error, MachineError) else None
    if (number := errno_of(error)) is not None:
        return fault(number, getattr(error, "filename", None))
    return _unfit_folder(str(error))


def errno_of(error: BaseException) -> int | None:
    """The errno of `REMEDIES` that an exception means, in its words if need be."""
    number = errno_in(str(error))
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    elif isinstance(error, OSError) and error.errno in REMEDIES:
        number = error.errno
    return None if number == errno.ENOMEM and own_limit_reached() else number


def errno_in(text: str) -> int | None:
    """The errno of `REMEDIES` that a compiler, a linker or a library names."""
    return next((number for phrase, number in _PHRASES.items() if phrase in text), None)


def fault(number: int, path: str | bytes | Path | None = None) -> MachineError:
    """The fault of an errno of `REMEDIES`. path: what it is about."""
    if number in (errno.ENOMEM, errno.EAGAIN) and address_space_is_short():
        return short_of_addresses()
    text = os.strerror(number).lower()
    if isinstance(path, (str, bytes, Path)):
        text += f": {_placed(Path(os.fsdecode(path)))}"
    return MachineError(text, REMEDIES[number])


def short_of_addresses() -> MachineError:
    """The fault of a limit of the user's own, which fails in many ways."""
    what = "the address space that a process may have is too small (ulimit -v)"
    return MachineError(what, f"raise the limit: ulimit -v unlimited; {RESUMES}")


def killed(what: str) -> MachineError:
    """The fault of a process that somebody ended. what: it, and that it was."""
    hint = f"the system may be out of memory (see dmesg): end other programs; {RESUMES}"
    return MachineError(what, hint)


def raise_if_fault(error: BaseException) -> None:
    """Raise the fault that an exception means; do nothing where the machine is not at fault."""
    if (found := fault_of(error)) is not None:
        raise found from error


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Name the path in an error of the system that names none: a write does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def _unfit_folder(text: str) -> MachineError | None:
    """The fault of a folder for temporary files that holds no files, or no code."""
    if _NO_CODE in text and address_space_is_short():
        return short_of_addresses()
    if _NO_CODE in text or _NO_FOLDER in text:
        what = f"temporary files cannot be used: {text.strip().splitlines()[0]}"
        return MachineError(what, "set TMPDIR to a folder that can be written to and executed from")
    return None


def _placed(path: Path) -> str:
    """A path as a message names it: with the variable that says where temporary files lie.

    Python's own `gettempdir` finds none on a full disk, or behind a fence.
    """
    inside = path.is_relative_to(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - its default
    return f"{path} (TMPDIR)" if inside else str(path)
