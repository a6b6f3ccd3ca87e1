"""Identity: what must be equal before a tuned schedule may be used again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class TaskKey:
    """Identity of a task on a target. Each field prevents one wrong reuse.

    workload: SHA-256 of the canonical text of the task's program. Prevents a schedule made for
        other shapes, dtypes, constants or computations from being applied.
    target: fingerprint of the target. Prevents code tuned for one instruction set, core count or
        cache from being used on another.

    The board's name, the rule set and the tool's version are provenance and not identity.
    """

    workload: str
    target: str

    def __str__(self) -> str:
        return f"{self.workload[:12]}@{self.target[:8]}"
