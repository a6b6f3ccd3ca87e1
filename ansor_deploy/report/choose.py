"""Which rendering fits the terminal."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..system.interrupt import in_any_case
from . import Report
from .plain import JsonReport, PlainReport, QuietReport


@contextmanager
def report_on_stderr(
    plain: bool = False, *, message_format: str = "human", quiet: bool = False
) -> Iterator[Report]:
    """A live report where stderr is a capable terminal, else lines; the terminal is put back.

    message_format: "json" for lines of JSON. quiet: without a terminal, only what goes wrong.
    """
    if message_format == "json":
        yield JsonReport()
    elif quiet and not sys.stderr.isatty():
        yield QuietReport()
    elif plain or not redraws():
        yield PlainReport()
    else:
        from .live import LiveReport  # imports rich

        report = LiveReport()
        with in_any_case(report.close):
            yield report


def redraws() -> bool:
    """Whether a person watches on a terminal that can draw over itself."""
    asked_plain = os.environ.get("NO_COLOR") or os.environ.get("CI")
    return sys.stderr.isatty() and not asked_plain and os.environ.get("TERM") != "dumb"
