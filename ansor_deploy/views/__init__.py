"""What a person looks at while a build runs: a list of events, a terminal and a plain rendering."""

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
    """Receives what happens, in order, and shows nothing of it.

    What inherits from it shows the events that it defines, on stderr, never on stdout.
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
        """So many of the stage's parts are done. what: they are, such as "kernels"."""

    def jobs(self, rows: Sequence[Row]) -> None:
        """The jobs of a farm stand so; it may be as they stood."""

    def printed(self, rule: str, line: str) -> None:
        """A user's rule has printed a line."""

    def verified(self, verification: Verification) -> None:
        """The library was compared with the oracle."""

    def preset(self, preset: Preset) -> None:
        """It was measured how many threads and streams are best for what it is used for."""

    def compared(self, speed: Speed) -> None:
        """The library was timed beside the untuned build."""

    def raced(self, race: Race) -> None:
        """The library was timed beside another engine."""

    def memory(self, figures: Memory) -> None:
        """What the library takes is known: the manifest's figures, in bytes."""

    def wrote(self, paths: list[Path]) -> None:
        """The outputs are in place."""

    def suggest(self, command: str) -> None:
        """A person may now want to do this."""

    def warn(self, message: str) -> None:
        """Something the user should know does not stop the build."""

    @cached_property
    def warn_once(self) -> Callable[[str], None]:
        """The same of what several steps find, each by itself, such as a rule that fails."""
        return cache(self.warn)
