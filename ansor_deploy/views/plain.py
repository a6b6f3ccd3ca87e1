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
        """Print it marked, so that a log can be searched for it."""
        self._say(f"warning: {shown(message)}", "yellow")

    def _say(self, line: str, style: str = "", *, unbroken: bool = False) -> None:
        """Print a line. style: where there are colours. unbroken: so that it can be copied."""
        for part in [line] if unbroken else text.wrapped(line, "", "  "):
            print(printable(part), file=self._stream, flush=True)


class PlainReport(QuietReport):
    """Each event becomes whole lines of at most 80 columns, at once.

    pause: seconds between two lines about the steps of a stage. verbose: show how long each stage
    took, all of a plan, and what rules print.
    """

    def __init__(
        self, stream: TextIO | None = None, pause: float = 2.0, *, verbose: bool = False
    ) -> None:
        super().__init__(stream)
        self._pause, self._verbose = pause, verbose
        self._stage, self._began, self._spoke = "", 0.0, 0.0
        self._jobs: list[str] = []  # a farm's, as they were last shown

    def stage(self, name: str, detail: str = "") -> None:
        """Print the stage's name in brackets."""
        self._begin(name)
        self._say(f"[{name}] {detail}".rstrip())

    def close(self) -> None:
        """Nothing more happens."""
        self._begin("")

    def _begin(self, name: str) -> None:
        """A stage ends where the next one begins."""
        now = time.monotonic()
        if self._verbose and self._stage:
            self._say(f"  {self._stage} took {text.duration(now - self._began)}", "dim")
        self._stage, self._began, self._spoke = name, now, now

    def step(self, what: str, done: int, total: int) -> None:
        """Print how far the stage is, if it has not been said for a while."""
        if (now := time.monotonic()) - self._spoke >= self._pause:
            self._spoke = now
            self._say(f"[{self._stage}] {text.steps(what, done, total)}")

    def quantised(self, facts: Quantised) -> None:
        """Print how far outputs are from the float model's, and the layers that cost most."""
        for line in quantising.lines(facts):
            self._say(line)

    def gained(self, gain: Gain) -> None:
        """Print what quantising gained."""
        style = "bold green" if gain.verdict == "faster" else "yellow"
        self._say(quantising.gain_text(gain), style)

    def plan(self, plan: Plan) -> None:
        """Print what becomes of the tasks, those that matter most, and the price."""
        for line, style in plan_lines(plan, None if self._verbose else ROWS):
            self._say(line, style, unbroken=True)

    def progress(self, progress: Progress) -> None:
        """Print one line a batch."""
        state = f"{text.trials(progress)}, {text.clock(progress)}"
        best = f"{progress.round.title}: {text.best(progress)}"
        model = text.latency(progress.round.end_to_end_ms / 1e3)
        self._say(f"{state}; {best}; tasks alone about {model}")

    def jobs(self, rows: Sequence[Row]) -> None:
        """Print those that have moved on, a line each."""
        lines = ["  ".join(text.job_cells(row)) for row in rows]
        for line, before in zip_longest(lines, self._jobs):
            if line != before:
                self._say(line, unbroken=True)
        self._jobs = lines

    def printed(self, rule: str, line: str) -> None:
        """Print the line after the rule's name, for whoever wants details."""
        if self._verbose:
            self._say(f"{rule}: {line}", "dim", unbroken=True)

    def verified(self, verification: Verification) -> None:
        """Print the errors found."""
        style = "green" if verification.ok else "bold red"
        self._say(text.verification_text(verification), style)

    def preset(self, preset: Preset) -> None:
        """Print what was chosen, beside the others."""
        self._say(text.preset_text(preset))

    def compared(self, speed: Speed) -> None:
        """Print the gain."""
        style = "bold green" if speed.verdict == "faster" else "yellow"
        self._say(text.speed_text(speed), style)

    def raced(self, race: Race) -> None:
        """Print which is faster."""
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
        """Print the message alone: a warning is of no file and ends nothing."""
        self._say(Message("warning", shown(message)).json, unbroken=True)


@dataclass(frozen=True)
class Message:
    """A line on stderr with `--message-format json`. code: the exit code, of an error.

    file, line: at fault, where it is known.
    """

    level: Literal["warning", "error"]
    message: str
    hint: str = ""
    file: str | None = None
    line: int | None = None
    code: int | None = None

    @property
    def json(self) -> str:
        """The line."""
        return json.dumps(asdict(self))
