"""A command's output: its answer on stdout, as text or as JSON, and its progress on stderr."""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from ..errors import UsageError
from ..system.printable import printable, without_passwords
from ..views import Report
from .helptext import QUIET

_MESSAGE_FORMAT = "--message-format"

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the answer as one JSON object."
)
message_format_option = click.option(
    _MESSAGE_FORMAT,
    type=click.Choice(("human", "json")),
    default="human",
    help="Warnings and errors as text, or as lines of JSON on stderr.  [default: human]",
)


def verbose_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option -v. what: its help."""
    return click.option("-v", "--verbose", is_flag=True, help=what)


@dataclass(frozen=True)
class Answer:
    """The result of a command.

    value: what --json prints. lines: the text printed without it. exit_code: that of the program.
    """

    value: Any
    lines: Iterable[str]
    exit_code: int = 0


def answering(command: Callable[..., Answer]) -> Callable[..., int]:
    """Give a command the option --json; print its answer and return its exit code.

    It also takes the options that `report` reads, and does not pass them to the command. Anything
    else that is written to stdout while the command runs goes to stderr.
    """

    @json_option
    @wraps(command)
    def call(
        as_json: bool, message_format: str = "human", verbose: bool = False, **words: Any
    ) -> int:
        if is_quiet() and verbose:
            raise UsageError("--quiet and --verbose contradict each other", "give one of them")
        with stdout_kept_clean():
            answer = command(**words)
        if as_json:
            print_json(answer.value)
        else:
            for line in answer.lines:
                say(line)
        return answer.exit_code

    return call


def report(*, quiet: bool = False) -> AbstractContextManager[Report]:
    """A report that shows progress on stderr, in the way that the command's options ask for.

    quiet: show only warnings and errors where stderr is no terminal.
    """
    from ..views.choose import report_on_stderr  # imported here: help does not need it

    words = click.get_current_context().params
    return report_on_stderr(
        words["as_json"],
        message_format=words.get("message_format", "human"),
        quiet=is_quiet() or (quiet and not sys.stderr.isatty()),
        verbose=is_verbose(),
    )


def is_verbose() -> bool:
    """Whether --verbose was given."""
    return bool(click.get_current_context().params.get("verbose"))


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return QUIET in click.get_current_context().meta


def tell(line: str) -> None:
    """Print a line of progress or advice on stderr, unless the command is quiet."""
    if not is_quiet():
        say(line, err=True)


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether a command line asks for messages in JSON.

    It looks at the words themselves, as click may have refused the command line.
    """
    formats = re.findall(rf"(?:^|\0){_MESSAGE_FORMAT}[=\0]([^\0]*)", "\0".join(words))
    return formats[-1:] == ["json"]  # the last option counts


def say(line: str, *, err: bool = False) -> None:
    """Print one line on stdout or stderr: control characters spelled out, no passwords of URLs."""
    click.echo(printable(without_passwords(line)), err=err)


def print_json(value: Any) -> None:
    """Print one JSON document; floats that JSON cannot express (infinity, NaN) become null."""
    from msgspec import to_builtins

    plain = finite(to_builtins(value, enc_hook=str))
    click.echo(json.dumps(plain, indent=2, allow_nan=False))


def finite(value: Any) -> Any:
    """The value, with infinities and NaNs replaced by None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return value


def in_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows as lines, with each column as wide as its widest cell."""
    shown = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Within it, what libraries, compilers and child processes print to stdout goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        if "numpy" in sys.modules:  # without NumPy, no library that prints is loaded
            import ctypes

            ctypes.CDLL(None).fflush(None)  # flushes what C++ code has printed to its own buffer
        os.dup2(kept, 1)
        os.close(kept)
