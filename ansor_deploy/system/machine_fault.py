"""Faults of this machine: the system would refuse the same to any program.

They say nothing about a program, a rule or a model: where an error would be recorded as a fact
about one of these, a fault is raised first.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import AnsorError, MachineError
from .limits import address_space_is_short, own_file_limit_reached, own_limit_reached

RESUMES = "what was measured is kept: the same command resumes"
_PLACES = "TMPDIR, --output"
_SPACE = f"free some, or name another place ({_PLACES}, --registry); {RESUMES}"
_FILES = f"end other programs, or raise the limit: ulimit -n 4096; {RESUMES}"
_SIZE = (
    "raise the limit of a file's size (ulimit -f unlimited), or write to a file system that takes "
    f"larger files; {RESUMES}"
)
_MEMORY = f"end other programs, or use a machine with more memory; {RESUMES}"

# What to do about each errno.
REMEDIES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: _SIZE,
    errno.EIO: f"the disk or the network file system failed: see the system's log; {RESUMES}",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: f"end other programs, or raise the limit of processes: ulimit -u; {RESUMES}",
}
# Messages of compilers, linkers and libraries, which give no errno.
_PHRASES = {
    **{os.strerror(number): number for number in REMEDIES},
    "std::bad_alloc": errno.ENOMEM,
    "can't start new thread": errno.EAGAIN,
}
_NO_CODE = "failed to map segment from shared object"  # the loader's, in a `noexec` folder
_NO_FOLDER = "No usable temporary directory"  # Python's message


def fault_of(error: BaseException) -> MachineError | None:
    """The fault that an exception means; None where the machine is not at fault."""
    if isinstance(error, AnsorError):
        return error if isinstance(error, MachineError) else None
    if (number := errno_of(error)) is not None:
        copied_to = getattr(error, "filename2", None)  # the other name is that of the source
        return fault(number, copied_to or getattr(error, "filename", None))
    return _unfit_folder(str(error))


def errno_of(error: BaseException) -> int | None:
    """The errno of `REMEDIES` that an exception carries, or names in its message."""
    number = errno_in(str(error))
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    elif isinstance(error, OSError) and error.errno in REMEDIES:
        number = error.errno
    ours = {errno.ENOMEM: own_limit_reached, errno.EFBIG: own_file_limit_reached}
    return None if number in ours and ours[number]() else number


def errno_in(text: str) -> int | None:
    """The errno of `REMEDIES` that a message of a compiler, a linker or a library means."""
    return next((number for phrase, number in _PHRASES.items() if phrase in text), None)


def fault(number: int, path: str | bytes | Path | None = None) -> MachineError:
    """The fault for an errno of `REMEDIES`. path: the file that it concerns."""
    if number in (errno.ENOMEM, errno.EAGAIN) and address_space_is_short():
        return short_of_addresses()
    text = os.strerror(number).lower()
    if isinstance(path, (str, bytes, Path)):
        text += f": {_placed(Path(os.fsdecode(path)))}"
    return MachineError(text, REMEDIES[number])


def short_of_addresses() -> MachineError:
    """The fault of too small a `ulimit -v`, which shows in many different errors."""
    what = "the address space that a process may have is too small (ulimit -v)"
    return MachineError(what, f"raise the limit: ulimit -v unlimited; {RESUMES}")


def killed(what: str) -> MachineError:
    """The fault of a process killed from outside. what: the message, which names it."""
    hint = f"the system may be out of memory (see dmesg): end other programs; {RESUMES}"
    return MachineError(what, hint)


def raise_if_fault(error: BaseException) -> None:
    """Raise the fault that an exception means; do nothing where the machine is not at fault."""
    if (found := fault_of(error)) is error:
        raise error  # not from itself: who follows causes, as Dask does, would find no end
    if found is not None:
        raise found from error


@contextmanager
def about(path: Path, unfinished: Path | None = None) -> Iterator[None]:
    """Add the path to an OSError that has none, as errors of writing do not.

    unfinished: the name under which the file is written, which says nothing to its user.
    """
    try:
        yield
    except OSError as error:
        if error.filename in (None, str(unfinished), unfinished):
            error.filename, error.filename2 = str(path), None
        raise


def _unfit_folder(text: str) -> MachineError | None:
    """The fault of a temporary folder that cannot hold files, or cannot hold executable code."""
    if _NO_CODE in text and address_space_is_short():
        return short_of_addresses()
    if _NO_CODE in text:
        found = re.search(rf"(\S+): {_NO_CODE}", text)
        what = f"{_placed(Path(found[1] if found else '?'))} cannot be run where it is: {_NO_CODE}"
        return MachineError(what, f"name a folder that is not mounted noexec ({_PLACES})")
    if _NO_FOLDER in text:
        what = f"temporary files cannot be used: {text.strip().splitlines()[0]}"
        return MachineError(what, "set TMPDIR to a folder that can be written to and executed from")
    return None


def _placed(path: Path) -> str:
    """A path for a message; one in the folder for temporary files is followed by "(TMPDIR)".

    Python's `gettempdir` is not asked: it finds no folder on a full disk, or behind a fence.
    """
    inside = path.is_relative_to(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - the default
    return f"{path} (TMPDIR)" if inside else str(path)
