"""The table of a farm's jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """A job: a model on a target.

    state: "waiting", the stage that it is at, "done" or "failed". worker: Dask's name for who has
    it. device: its board, "" for the worker's own machine. begun: how often. latency_ms: of the
    model, as far as is known. records: that came in and were new. tuned: the figures of `tune`.
    error, hint, exit_code: of a job that failed.
    """

    model: str
    target: str
    state: str = "waiting"
    worker: str = ""
    device: str = ""
    begun: int = 0
    trials: int = 0
    total: int = 0
    latency_ms: float = math.nan
    records: int = 0
    tuned: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    hint: str = ""
    exit_code: int = 0

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.model} for {self.target}"

    def to_json(self) -> dict[str, Any]:
        """A JSON object, one of the list `jobs` of `tune --json`."""
        return asdict(self)
