"""What a person looks at while a build runs: one protocol, a terminal and a plain rendering."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..build.verify import Comparison, Verification
    from ..tune.plan import Plan
    from ..tune.scheduler import Progress


class Report(Protocol):
    """Receives what happens, in order. Implementations print to stderr, never to stdout."""

    def stage(self, name: str, detail: str = "") -> None:
        """A stage of the build begins."""

    def plan(self, plan: Plan) -> None:
        """What will be tuned and what is reused."""

    def progress(self, progress: Progress) -> None:
        """A batch of candidates was measured."""

    def verified(self, verification: Verification) -> None:
        """The library was compared with the oracle."""

    def compared(self, comparison: Comparison) -> None:
        """The library was timed beside the untuned build."""

    def wrote(self, paths: list[Path]) -> None:
        """The outputs are in place."""

    def warn(self, message: str) -> None:
        """Something the user should know that does not stop the build."""
