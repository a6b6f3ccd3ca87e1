"""The outcome of one candidate: its times, or why it has none."""

from dataclasses import dataclass
from typing import Any

from ..system.run_times import median

UNMEASURED = "unmeasured"  # the answer of `ReplayMeasurer` for candidates that were never recorded
INFRASTRUCTURE = "infrastructure"  # a failure of the machines, not of the candidate

# The kinds of errors.
KINDS = frozenset(
    {"build", "link", "load", "run", "timeout", "crash", "wrong-output", INFRASTRUCTURE, UNMEASURED}
)


@dataclass(frozen=True)
class Outcome:
    """Times in seconds, or an error that is data.

    error: "" or one of `KINDS`; "infrastructure" and "unmeasured" say nothing about the candidate.
    proof: how the output was checked, {"oracle", "seed", "max_abs_err", "max_rel_err"}; None where
    it was not checked. device: the name of the site that it ran on. clock: MHz of the processor
    right after the run; 0 where that is not known.
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
