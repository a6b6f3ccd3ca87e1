"""Choose the rendering that suits the terminal."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..system.interrupt import in_any_case
from . import Report
from .plain import JsonReport, PlainReport, QuietReport


@contextmanager
def report_on_stderr(
    plain: bool = False,
    *,
    message_format: str = "human",
    quiet: bool = False,
    verbose: bool = False,
) -> Iterator[Report]:
    """A live report where stderr is a capable terminal, else lines; it restores the terminal.

    message_format: "json" for lines of JSON. quiet: only warnings and errors. verbose: add details.
    """
    if message_format == "json":
        yield JsonReport()
    elif quiet:
        yield QuietReport()
    else:
        report = _told(plain or not redraws(), verbose=verbose)
        with in_any_case(report.close):
            yield report


def _told(plain: bool, *, verbose: bool) -> PlainReport:
    if plain:
        return PlainReport(verbose=verbose)
    from .live import LiveReport  # imports rich

    return LiveReport(verbose=verbose)


def redraws() -> bool:
    """Whether stderr is a terminal that can redraw, and nobody asked for plain output."""
    asked_plain = os.environ.get("NO_COLOR") or os.environ.get("CI")
    return sys.stderr.isatty() and not asked_plain and os.environ.get("TERM") != "dumb"
