"""Reports as lines: for logs, pipes, other programs, and terminals that cannot redraw."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from ..system.printable import message as shown
from ..system.printable import printable
from . import Report, quantising, text
from .plan import ROWS
from .plan import lines as plan_lines

if TYPE_CHECKING:
    from ..farm.table import Row
    from ..ship.manifest import Memory, Race, Speed
    from ..ship.preset import Preset
    from ..ship.quantised import Gain, Quantised
    from ..ship.verify.verify import Verification
    from ..tune.plan import Plan
    from ..tune.scheduler import Progress


class QuietReport(Report):
    """Warnings only: for build tools, and for commands that answer on stdout alone."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def warn(self, message: str) -> None:
        """Print the message after "warning:", so that a log can be searched for it."""
        self._say(f"warning: {shown(message)}", "yellow")

    def _say(self, line: str, style: str = "", *, unbroken: bool = False) -> None:
        """Print a line, wrapped.

        style: used where there are colours. unbroken: do not wrap it, so that it can be copied.
        """
        for part in [line] if unbroken else text.wrapped(line, "", "  "):
            print(printable(part), file=self._stream, flush=True)


class PlainReport(QuietReport):
    """Prints each event at once, as lines of at most 80 columns.

    pause: seconds between two lines on the steps of a stage. verbose: show how long each stage
    took, all of a plan, and what rules print.
    """

    def __init__(
        self, stream: TextIO | None = None, pause: float = 2.0, *, verbose: bool = False
    ) -> None:
        super().__init__(stream)
        self._pause, self._verbose = pause, verbose
        self._stage, self._began, self._spoke = "", 0.0, 0.0
        self._jobs: list[str] = []  # lines on a farm's jobs, as last shown

    def stage(self, name: str, detail: str = "") -> None:
        """Print the stage's name in brackets."""
        self._begin(name)
        self._say(f"[{name}] {detail}".rstrip())

    def close(self) -> None:
        """End the last stage: nothing more happens."""
        self._begin("")

    def _begin(self, name: str) -> None:
        """End the stage before, and begin this one."""
        now = time.monotonic()
        if self._verbose and self._stage:
            self._say(f"  {self._stage} took {text.duration(now - self._began)}", "dim")
        self._stage, self._began, self._spoke = name, now, now

    def step(self, what: str, done: int, total: int) -> None:
        """Print how far the stage is, unless that was printed less than `pause` seconds ago."""
        if (now := time.monotonic()) - self._spoke >= self._pause:
            self._spoke = now
            self._say(f"[{self._stage}] {text.steps(what, done, total)}")

    def quantised(self, facts: Quantised) -> None:
        """Print how far the outputs are from the float model's, and the layers that cost most."""
        for line in quantising.lines(facts):
            self._say(line)

    def gained(self, gain: Gain) -> None:
        """Print what quantising gained."""
        style = "bold green" if gain.verdict == "faster" else "yellow"
        self._say(quantising.gain_text(gain), style)

    def plan(self, plan: Plan) -> None:
        """Print the outcome of each kind of task, the tasks that matter most, and the cost."""
        for line, style in plan_lines(plan, None if self._verbose else ROWS):
            self._say(line, style, unbroken=True)

    def progress(self, progress: Progress) -> None:
        """Print one line a batch."""
        state = f"{text.trials(progress)}, {text.clock(progress)}"
        best = f"{progress.round.title}: {text.best(progress)}"
        model = text.latency(progress.round.end_to_end_ms / 1e3)
        self._say(f"{state}; {best}; tasks alone about {model}")

    def jobs(self, rows: Sequence[Row]) -> None:
        """Print a line for each job that has changed."""
        lines = ["  ".join(text.job_cells(row)) for row in rows]
        for line, before in zip_longest(lines, self._jobs):
            if line != before:
                self._say(line, unbroken=True)
        self._jobs = lines

    def printed(self, rule: str, line: str) -> None:
        """With --verbose, print the line after the rule's name."""
        if self._verbose:
            self._say(f"{rule}: {line}", "dim", unbroken=True)

    def verified(self, verification: Verification) -> None:
        """Print the errors found."""
        style = "green" if verification.ok else "bold red"
        self._say(text.verification_text(verification), style)

    def preset(self, preset: Preset) -> None:
        """Print the split that was chosen, beside the others."""
        self._say(text.preset_text(preset))

    def compared(self, speed: Speed) -> None:
        """Print what tuning has gained."""
        style = "bold green" if speed.verdict == "faster" else "yellow"
        self._say(text.speed_text(speed), style)

    def raced(self, race: Race) -> None:
        """Print the result of the race."""
        style = "bold green" if race.verdict == "faster" else "yellow"
        self._say(text.race_text(race), style)

    def memory(self, figures: Memory) -> None:
        """Print the figures."""
        self._say(text.memory_text(figures))

    def wrote(self, paths: list[Path]) -> None:
        """Print one path a line."""
        for path in paths:
            self._say(f"wrote {path}", "bold", unbroken=True)


class JsonReport(QuietReport):
    """Warnings only, each as a line of JSON, for programs that show them in their own way."""

    def warn(self, message: str) -> None:
        """Print the message alone: a warning concerns no file, and has no exit code."""
        self._say(Message("warning", shown(message)).json, unbroken=True)


@dataclass(frozen=True)
class Message:
    """A line on stderr with `--message-format json`. code: the exit code, for an error.

    file, line: where the mistake is, if known.
    """

    level: Literal["warning", "error"]
    message: str
    hint: str = ""
    file: str | None = None
    line: int | None = None
    code: int | None = None

    @property
    def json(self) -> str:
        """The line as JSON."""
        return json.dumps(asdict(self))
