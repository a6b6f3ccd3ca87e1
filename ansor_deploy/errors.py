"""The errors that users can meet. Each says what went wrong, where, and what to do next.

They may be raised anywhere, and are caught in one place, `ansor_deploy.cli`, which prints the
message and exits with the class's exit code. Build systems rely on these codes.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class AnsorError(Exception):
    """An expected failure, with its remedy."""

    exit_code = 1

    def __init__(
        self, text: str, hint: str = "", file: Path | None = None, line: int | None = None
    ) -> None:
        """file, line: where the user's own file is at fault, if it is; they precede the text."""
        super().__init__(text)
        self.text, self.hint = text, hint
        self.file, self.line = file, line
        if hint:
            self.__notes__ = [f"hint: {hint}"]  # shown at a traceback's end since Python 3.11

    def __str__(self) -> str:
        return self.message

    @property
    def message(self) -> str:
        """The text, after the file and the line if there are any."""
        places = [str(part) for part in (self.file, self.line) if part is not None]
        return ": ".join([":".join(places), self.text] if places else [self.text])


@contextmanager
def blaming(file: Path) -> Iterator[None]:
    """Name this file in an AnsorError that is raised in the context, if it names no other."""
    try:
        yield
    except AnsorError as error:
        error.file = error.file or file
        raise


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the closest known name, and all known ones."""
    import difflib  # only errors need it

    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    return f"{guess}Known: {', '.join(names) or 'none'}."


class LinkError(AnsorError):
    """The linker could not link object files to a library; the program is not at fault."""


class UsageError(AnsorError):
    """The command's options or the files it reads are wrong (exit 2)."""

    exit_code = 2


class ModelError(AnsorError):
    """The model cannot be read, or contains something that cannot be compiled (exit 3)."""

    exit_code = 3


class DeviceError(AnsorError):
    """The machine that should run the code cannot be reached or cannot run it (exit 4)."""

    exit_code = 4


class DeviceLost(DeviceError):  # noqa: N818 - an event that may be over at the next try
    """The connection or the device went away (exit 4); trying again may help."""


class MissingRecordError(AnsorError):
    """A frozen build lacks the record of a task (exit 5)."""

    exit_code = 5


class VerificationError(AnsorError):
    """The library's numbers differ from the oracle's (exit 6)."""

    exit_code = 6


class BudgetError(AnsorError):
    """The budget ended before the goal was reached (exit 7)."""

    exit_code = 7


class RegistryError(AnsorError):
    """The registry is damaged, locked, or not a registry (exit 8)."""

    exit_code = 8


class MachineError(AnsorError):
    """This machine failed, not a program: no space, no memory, a killed process (exit 9).

    Such an end is never recorded as a fact about a schedule; trying again may help.
    """

    exit_code = 9
