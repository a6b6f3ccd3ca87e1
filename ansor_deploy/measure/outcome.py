"""The outcome of one candidate: its times, or why there are none."""

from dataclasses import dataclass
from typing import Any

from ..system.run_times import median

UNMEASURED = "unmeasured"  # what `ReplayMeasurer` answers about what was never recorded
INFRASTRUCTURE = "infrastructure"  # a failure of what builds or runs, not of the candidate

# What an error may be.
KINDS = frozenset(
    {"build", "link", "load", "run", "timeout", "crash", "wrong-output", INFRASTRUCTURE, UNMEASURED}
)


@dataclass(frozen=True)
class Outcome:
    """Times in seconds, or an error that is data.

    error: "" or one of `KINDS`; "infrastructure" and "unmeasured" say nothing of the candidate.
    proof: how the output was checked, {"oracle", "seed", "max_abs_err", "max_rel_err"}; None
    where it never came to that. device: the name of the site that it ran on.
    clock: MHz of its processor right after; 0 where it does not say.
    """

    trace: str
    seconds: tuple[float, ...] = ()
    error: str = ""
    message: str = ""
    proof: dict[str, Any] | None = None
    device: str = ""
    clock: int = 0

    @property
    def latency(self) -> float:
        """Median run time in seconds; infinite for a failed candidate."""
        return median(self.seconds) if self.seconds and not self.error else float("inf")

    def __repr__(self) -> str:
        if self.error:
            return f"Outcome({self.error}: {self.message[:60]!r})"
        return f"Outcome({self.latency * 1e3:.4g} ms, {len(self.seconds)} repeats)"
