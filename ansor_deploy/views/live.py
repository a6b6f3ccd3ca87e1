"""A report on a terminal: coloured lines, and during tuning a panel that is redrawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..system.printable import printable
from . import text
from .plain import PlainReport

if TYPE_CHECKING:
    from ..farm.table import Row
    from ..tune.plan import Plan
    from ..tune.scheduler import Progress


class LiveReport(PlainReport):
    """Draws on stderr with rich; `close` restores the terminal."""

    def __init__(self, console: Console | None = None, *, verbose: bool = False) -> None:
        super().__init__(verbose=verbose)
        self._console = console or Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._panel: Callable[[], RenderableType] = Text  # draws the current state

    def close(self) -> None:
        """Restore the terminal in any case; the panel stays as it was last drawn."""
        self._stop()
        super().close()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def stage(self, name: str, detail: str = "") -> None:
        """Print the name in bold, below the panel of the previous stage."""
        self._stop()
        self._begin(name)
        self._console.print(Text.assemble((name, "bold cyan"), "  ", (printable(detail), "dim")))

    def plan(self, plan: Plan) -> None:
        """Print the plan below the steps before it."""
        self._stop()
        super().plan(plan)

    def progress(self, progress: Progress) -> None:
        """Show the panel from the first batch on; its clocks also run between batches."""
        received = time.monotonic()
        self._draw(lambda: panel(progress, time.monotonic() - received))

    def step(self, what: str, done: int, total: int) -> None:
        """Redraw the bar of the stage."""
        self._draw(lambda: steps(what, done, total))

    def jobs(self, rows: Sequence[Row]) -> None:
        """Redraw the table of a farm's jobs."""
        self._draw(lambda: jobs(rows))

    def wrote(self, paths: list[Path]) -> None:
        """Print the paths below the last panel."""
        self._stop()
        super().wrote(paths)

    def suggest(self, command: str) -> None:
        """Print the command unwrapped, so that it can be pasted."""
        self._say(f"next     {command}", unbroken=True)

    def _draw(self, panel: Callable[[], RenderableType]) -> None:
        self._panel = panel
        if self._live is None:
            self._live = Live(
                console=self._console,
                get_renderable=self._drawn,
                refresh_per_second=2,
                redirect_stdout=False,
            )
            self._live.start()

    def _drawn(self) -> RenderableType:
        return self._panel()

    def _say(self, line: str, style: str = "", *, unbroken: bool = False) -> None:
        shown = printable(line, keep="" if unbroken else "\n")
        self._console.print(Text(shown, style), soft_wrap=unbroken)


def steps(what: str, done: int, total: int) -> RenderableType:
    """The progress of a stage, as a bar and in numbers."""
    grid = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=total, completed=done, width=30)
    grid.add_row(bar, Text(text.steps(what, done, total)))
    return grid


def jobs(rows: Sequence[Row]) -> RenderableType:
    """The table of a farm's jobs, with failed ones in red."""
    grid = Table(*text.JOB_HEADER, box=None, padding=(0, 2, 0, 0))
    for row in rows:
        style = {"done": "green", "failed": "red", "waiting": "dim"}.get(row.state, "")
        grid.add_row(*(Text(cell, style) for cell in text.job_cells(row)))
    return grid


def panel(progress: Progress, since: float = 0.0) -> RenderableType:
    """The state of tuning, `since` seconds after the batch that `progress` describes."""
    # With a time limit alone, the number of trials is unknown: the bar pulses.
    bar = ProgressBar(total=progress.total_trials or None, completed=progress.trials, width=30)
    grid = Table.grid(padding=(0, 2))
    grid.add_row(bar, Text(text.trials(progress), "yellow" if progress.failed else ""))
    model = f"tasks alone about {text.latency(progress.round.end_to_end_ms / 1e3)}"
    state = Text.assemble((model, "bold"), f"; {text.clock(progress, since)}")
    task = f"{progress.round.title}: {text.best(progress)}"
    return Group(grid, state, Text(task, "dim"))
