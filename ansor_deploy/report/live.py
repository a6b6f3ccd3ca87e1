"""A report on a terminal: coloured lines, and while tuning a panel that is drawn over."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..tune.scheduler import Progress
from . import text

if TYPE_CHECKING:
    from ..build.verify import Comparison, Verification
    from ..tune.plan import Plan, PlanRow

ROWS = 15
STATUS_STYLES = {"hit": "green", "near": "cyan", "miss": "", "skip": "dim"}


class LiveReport:
    """Draws with rich on stderr; `close` gives the terminal back."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._progress: Progress | None = None
        self._received = 0.0

    def close(self) -> None:
        """Give the terminal back, whatever happened."""
        self._end_panel()

    def stage(self, name: str, detail: str = "") -> None:
        """A bold name; the panel of the stage before stays as it last stood."""
        self._end_panel()
        self._say(Text.assemble((name, "bold cyan"), "  ", (detail, "dim")))

    def plan(self, plan: Plan) -> None:
        """The tasks that matter most, and the sum."""
        shown, more = text.plan_rows(plan, ROWS)
        self._say(_plan_table(shown))
        if more:
            self._say(Text(f"  and {more} more", "dim"))
        self._say(Text(text.plan_summary(plan)))
        for line in text.stale_lines(plan):
            self._console.print(Text(line), soft_wrap=True)

    def progress(self, progress: Progress) -> None:
        """Opens the panel at the first batch; the clocks run on between batches."""
        self._progress, self._received = progress, time.monotonic()
        if self._live is None:
            self._live = Live(
                console=self._console,
                get_renderable=self._panel,
                refresh_per_second=2,
                redirect_stdout=False,
            )
            self._live.start()

    def verified(self, verification: Verification) -> None:
        """The errors found, green or red."""
        style = "green" if verification.ok else "bold red"
        self._say(Text(text.verification_text(verification), style))

    def compared(self, comparison: Comparison) -> None:
        """The gain."""
        faster = comparison.latency_ms < comparison.untuned_ms
        self._say(Text(text.comparison_text(comparison), "bold green" if faster else "yellow"))

    def wrote(self, paths: list[Path]) -> None:
        """One path a line, unbroken, so that it can be copied."""
        self._end_panel()
        for path in paths:
            self._console.print(Text.assemble("wrote ", (str(path), "bold")), soft_wrap=True)

    def warn(self, message: str) -> None:
        """Above the panel, if there is one."""
        self._say(Text(f"warning: {message}", "yellow"))

    def _say(self, renderable: RenderableType) -> None:
        self._console.print(renderable)

    def _end_panel(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _panel(self) -> RenderableType:
        if self._progress is None:
            return Text()
        return panel(self._progress, time.monotonic() - self._received)


def panel(progress: Progress, since: float = 0.0) -> RenderableType:
    """How tuning stands, `since` seconds after the batch that is told."""
    # A run that is limited by time alone has no total: the bar then pulses.
    bar = ProgressBar(total=progress.total_trials or None, completed=progress.trials, width=30)
    grid = Table.grid(padding=(0, 2))
    grid.add_row(bar, Text.assemble(*_counts(progress)))
    model = f"model about {text.latency(progress.end_to_end)} a run"
    standing = Text.assemble((model, "bold"), f"; {_clock(progress, since)}")
    why = f" ({progress.why})" if progress.why else ""
    task = f"{text.shortened(progress.task, 40)}: best {text.latency(progress.best)}{why}"
    return Group(grid, standing, Text(task, "dim"))


def _counts(progress: Progress) -> list[tuple[str, str]]:
    total = f"/{progress.total_trials}" if progress.total_trials else ""
    counts = [(f"{progress.trials}{total} trials", "")]
    if progress.failed:
        counts.append((f", {progress.failed} failed", "yellow"))
    return counts


def _clock(progress: Progress, since: float) -> str:
    left = text.duration(max(0.0, progress.left - since))
    return f"{text.duration(progress.elapsed + since)} gone, {left} left"


def _plan_table(rows: list[PlanRow]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False)
    for name, left in zip(text.HEADER, text.LEFT, strict=True):
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*text.plan_cells(row), style=STATUS_STYLES[row.status])
    return table
