"""The only place where exceptions of commands become a message and an exit code."""

import errno
import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from ..errors import AnsorError
from ..system.interrupt import check, forget, interrupt, watched
from ..system.limits import address_space_is_short
from ..system.machine_fault import fault_of, short_of_addresses
from ..system.printable import message, printable
from .output import asks_for_json, print_json, say
from .standard_streams import finish_stdout, open_streams, reader_has_left

# What the system refuses to do for this user is theirs to mend, and not a bug of this tool.
_PERMISSIONS = "check the permissions, or write elsewhere with --output and --registry"
SYSTEM_HINTS = {
    errno.EACCES: _PERMISSIONS,
    errno.EPERM: _PERMISSIONS,
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.EROFS: "the file system is read-only: write elsewhere with --output and --registry",
}


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived: unwind as for Ctrl-C, so that measurements are kept."""


class HungUp(KeyboardInterrupt):
    """SIGHUP arrived: the terminal or the session is gone. Unwind as for Ctrl-C."""


_GARBAGE = 50_000  # new objects between collections; what imports create is no garbage
READER_LEFT = 128 + signal.SIGPIPE  # as with `| head`: no message is printed
_RAISED = {signal.SIGTERM: Terminated, signal.SIGHUP: HungUp, signal.SIGINT: KeyboardInterrupt}


@dataclass(frozen=True)
class Failure:
    """An error as the user reads it.

    file, line: the place of the mistake, if it is in a file of the user's.
    """

    kind: str
    message: str
    hint: str
    exit_code: int
    file: str | None = None
    line: int | None = None


def leave(run: Callable[[], int | None], words: list[str]) -> NoReturn:
    """Run a command line, print its error if there is one, and exit."""
    gc.set_threshold(_GARBAGE)
    open_streams()
    try:
        with interruptible(words):
            code = run() or 0
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - no exception may leave this function
        broken = isinstance(error, (BrokenPipeError, SystemExit))  # click's for a broken pipe
        left = broken and reader_has_left()
        code = READER_LEFT if left else failed(error, words)
    finish_stdout()
    gc.freeze()  # spares Python's last collection at exit: it would visit every object for nothing
    sys.exit(code)


def failed(error: BaseException, words: list[str]) -> int:
    """Print what an exception means and return the exit code.

    A group without a command prints its help.
    """
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        with suppress(OSError):
            for line in error.format_message().split("\n"):
                say(line, err=True)
        return error.exit_code
    failure = describe(error, words)
    with suppress(OSError):  # stdout, for --json, may be gone
        show(failure, words)
    return failure.exit_code


@contextmanager
def interruptible(words: list[str]) -> Iterator[None]:
    """Within it no signal of `_RAISED` is lost; one that is ignored, as under nohup, stays ignored.

    Where the main thread does not handle a signal in time, the process ends as if it had.
    """

    def end(number: int) -> None:
        os._exit(failed(_RAISED[signal.Signals(number)](), words))

    def on_signal(number: int, frame: FrameType | None) -> None:
        interrupt(_RAISED[signal.Signals(number)], frame)

    left_alone = (signal.SIG_IGN, None)
    handled = [number for number in _RAISED if signal.getsignal(number) not in left_alone]
    before = {number: signal.signal(number, on_signal) for number in handled}
    try:
        with watched(handled, end):
            yield
    except Exception:
        check()  # a library may have turned an interrupt into this exception
        raise
    finally:
        forget()
        for number, handler in before.items():
            signal.signal(number, handler)


def describe(error: BaseException, words: list[str]) -> Failure:
    """The failure that an exception means; for an unexpected one, a log is written."""
    if isinstance(error, click.Abort):
        error = error.__cause__ or KeyboardInterrupt()  # click raises Abort from Ctrl-C
    error = _fault_of(error) or error
    if isinstance(error, AnsorError):
        file = str(error.file) if error.file else None
        return Failure(kind_of(error), error.text, error.hint, error.exit_code, file, error.line)
    if isinstance(error, click.ClickException):
        return usage_failure(error)
    if isinstance(error, KeyboardInterrupt):
        code = 128 + next(number for number, kind in _RAISED.items() if isinstance(error, kind))
        message = "interrupted; what was measured is kept: the same command resumes"
        return Failure("interrupted", message, "", code)
    if isinstance(error, FileNotFoundError) and not _is_somewhere():
        return Failure("usage", "the current folder was removed", "go to another: cd FOLDER", 2)
    if isinstance(error, OSError) and error.errno in SYSTEM_HINTS:
        return system_failure(error, SYSTEM_HINTS[error.errno])
    return bug(error, words)


def _is_somewhere() -> bool:
    """Whether the current folder still exists."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _fault_of(error: BaseException) -> BaseException | None:
    """The machine's fault behind an exception, such as no memory to load a library, or None."""
    expected = isinstance(error, (AnsorError, click.ClickException, OSError))
    if isinstance(error, Exception) and not expected and address_space_is_short():
        return short_of_addresses()
    return fault_of(error)


def kind_of(error: AnsorError) -> str:
    """The kind in messages: `MissingRecordError` is "missing-record", `AnsorError` "failed"."""
    if type(error) is AnsorError:
        return "failed"
    name = type(error).__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def usage_failure(error: click.ClickException) -> Failure:
    """The failure of arguments that click refuses, with a hint at the help."""
    context = getattr(error, "ctx", None)
    hint = f"see {context.command_path} --help" if context else "see ansor-deploy --help"
    words = " ".join(error.format_message().split())  # click separates choices by tabs
    return Failure("usage", words, hint, error.exit_code)


def system_failure(error: OSError, hint: str) -> Failure:
    """The failure of a system call, with the reason and the file that it concerns."""
    reason = (error.strerror or str(error)).lower()
    return Failure("system", reason, hint, 1, error.filename and os.fsdecode(error.filename))


def bug(error: BaseException, words: list[str]) -> Failure:
    """The failure of an unexpected exception, which is logged."""
    from .crashlog import write_log

    message = f"unexpected {type(error).__name__}: {error}"
    hint = f"this is a bug: please report it with the log {write_log(error, words)}"
    return Failure("bug", message, hint, 70)


def show(failure: Failure, words: list[str]) -> None:
    """Print a failure on stderr, and as JSON on stdout too where --json was given."""
    from ..views.plain import Message  # imported here: help does not need it

    failure = replace(failure, message=message(failure.message), hint=message(failure.hint))
    if asks_for_json(words):
        where = failure.file, failure.line, failure.exit_code
        say(Message("error", failure.message, failure.hint, *where).json, err=True)
    else:
        at = ":".join(str(part) for part in (failure.file, failure.line) if part) or "ansor-deploy"
        hint = [f"  hint: {failure.hint}"] if failure.hint else []
        for line in "\n".join([f"{printable(at)}: error: {failure.message}", *hint]).split("\n"):
            say(line, err=True)
    if "--json" in words:
        print_json({"error": asdict(failure)})
