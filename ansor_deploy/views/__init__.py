"""What a person sees while a build runs: the events, and renderings of them as lines or panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..farm.table import Row
    from ..ship.manifest import Memory, Race, Speed
    from ..ship.preset import Preset
    from ..ship.quantised import Gain, Quantised
    from ..ship.verify.verify import Verification
    from ..tune.plan import Plan
    from ..tune.scheduler import Progress


class Report:
    """Receives the events of a build in order, and shows nothing.

    Subclasses show the events whose methods they define, on stderr and never on stdout.
    """

    def stage(self, name: str, detail: str = "") -> None:
        """A stage of the build begins."""

    def quantised(self, facts: Quantised) -> None:
        """The model was quantised, and compared with the float one."""

    def gained(self, gain: Gain) -> None:
        """The library was timed beside one of the float model."""

    def plan(self, plan: Plan) -> None:
        """What will be tuned and what is reused is known."""

    def progress(self, progress: Progress) -> None:
        """A batch of candidates was measured."""

    def step(self, what: str, done: int, total: int) -> None:
        """Of a stage's `total` parts `done` are done. what: their kind, such as "kernels"."""

    def jobs(self, rows: Sequence[Row]) -> None:
        """The table of a farm's jobs, which may be unchanged since the last call."""

    def printed(self, rule: str, line: str) -> None:
        """A user's rule has printed a line."""

    def verified(self, verification: Verification) -> None:
        """The library was compared with the oracle."""

    def preset(self, preset: Preset) -> None:
        """The best number of threads and streams for the library's use was measured."""

    def compared(self, speed: Speed) -> None:
        """The library was timed beside the untuned build."""

    def raced(self, race: Race) -> None:
        """The library was timed beside another engine."""

    def memory(self, figures: Memory) -> None:
        """The library's memory is known: the manifest's figures, in bytes."""

    def wrote(self, paths: list[Path]) -> None:
        """The outputs are in place."""

    def suggest(self, command: str) -> None:
        """This command may be useful next."""

    def warn(self, message: str) -> None:
        """Something happened that the user should know, and that does not stop the build."""

    @cached_property
    def warn_once(self) -> Callable[[str], None]:
        """As `warn`, but once for each message: several steps may have the same to say."""
        return cache(self.warn)
