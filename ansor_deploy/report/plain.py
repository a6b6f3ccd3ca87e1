"""A report as lines: for logs, pipes and terminals that cannot redraw."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..tune.scheduler import Progress
from . import text

if TYPE_CHECKING:
    from ..build.verify import Comparison, Verification
    from ..tune.plan import Plan

ROWS = 15


class PlainReport:
    """Each event becomes whole lines of at most 80 columns, at once."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def stage(self, name: str, detail: str = "") -> None:
        """The stage's name in brackets."""
        self._say(f"[{name}] {detail}".rstrip())

    def plan(self, plan: Plan) -> None:
        """The tasks that matter most, and the sum."""
        for line in text.plan_lines(plan, ROWS):
            print(f"  {line}", file=self._stream)
        self._say(text.plan_summary(plan))
        for line in text.stale_lines(plan):
            print(line, file=self._stream, flush=True)

    def progress(self, progress: Progress) -> None:
        """One line a batch."""
        failed = f", {progress.failed} failed" if progress.failed else ""
        why = f" ({progress.why})" if progress.why else ""
        self._say(
            f"{progress.trials}/{progress.total_trials} trials{failed}, "
            f"{text.duration(progress.elapsed)} gone, {text.duration(progress.left)} left; "
            f"{progress.task}: best {text.latency(progress.best)}{why}; "
            f"model about {text.latency(progress.end_to_end)}"
        )

    def verified(self, verification: Verification) -> None:
        """The errors found."""
        self._say(text.verification_text(verification))

    def compared(self, comparison: Comparison) -> None:
        """The gain."""
        self._say(text.comparison_text(comparison))

    def wrote(self, paths: list[Path]) -> None:
        """One path a line, unbroken, so that it can be copied."""
        for path in paths:
            print(f"wrote {path}", file=self._stream, flush=True)

    def warn(self, message: str) -> None:
        """Marked, so that a log can be searched for it."""
        self._say(f"warning: {message}")

    def _say(self, line: str) -> None:
        options = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
        wrapped = textwrap.fill(line, text.WIDTH, **options)  # type: ignore[arg-type]
        print(wrapped, file=self._stream, flush=True)


class QuietReport(PlainReport):
    """Warnings only: for build tools, and for commands whose whole answer goes to stdout."""

    def stage(self, name: str, detail: str = "") -> None:
        """Not told."""

    def plan(self, plan: Plan) -> None:
        """Not told, or the answer itself."""

    def progress(self, progress: Progress) -> None:
        """Not told."""

    def verified(self, verification: Verification) -> None:
        """Not told."""

    def compared(self, comparison: Comparison) -> None:
        """Not told."""

    def wrote(self, paths: list[Path]) -> None:
        """Not told."""
