"""The errors a user can meet: each says what went wrong, where, and what to do next.

They are raised anywhere and caught in one place, `ansor_deploy.cli`, which prints the
message and leaves with the class's exit code. The codes are a contract with build systems.
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
        """file, line: of the user's that is at fault, if one is; they stand before the text."""
        super().__init__(text)
        self.text, self.hint = text, hint
        self.file, self.line = file, line
        if hint:
            self.__notes__ = [f"hint: {hint}"]  # which a traceback ends with, from Python 3.11 on

    def __str__(self) -> str:
        return self.message

    @property
    def message(self) -> str:
        """The text, and before it the file and the line."""
        places = [str(part) for part in (self.file, self.line) if part is not None]
        return ": ".join([":".join(places), self.text] if places else [self.text])


@contextmanager
def blaming(file: Path) -> Iterator[None]:
    """Name this file in an error that is raised meanwhile, if it does not name another."""
    try:
        yield
    except AnsorError as error:
        error.file = error.file or file
        raise


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the closest one that is known, and all of them."""
    import difflib  # which only an error needs

    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    return f"{guess}Known: {', '.join(names) or 'none'}."


class LinkError(AnsorError):
    """The linker could not make a library of object files; the program is not at fault."""


class UsageError(AnsorError):
    """The command's options or the files it reads are wrong (exit 2)."""

    exit_code = 2


class ModelError(AnsorError):
    """The model cannot be read, or asks for what cannot be compiled (exit 3)."""

    exit_code = 3


class DeviceError(AnsorError):
    """The machine that should run the code cannot be reached or cannot run it (exit 4)."""

    exit_code = 4


class DeviceLost(DeviceError):  # noqa: N818 - an event, which trying again may mend
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
    """This machine failed, not what was made on it: no space, no memory, a killed process (exit 9).

    Nothing that ended so is kept as a fact about a schedule; trying again may help.
    """

    exit_code = 9
