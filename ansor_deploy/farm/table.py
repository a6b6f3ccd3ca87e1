"""The table of a farm's jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from ..system.json_types import Count, MsIfKnown


@dataclass(frozen=True)
class Row:
    """A job, for a model and a target.

    state: "waiting", the job's current stage, "done" or "failed". worker: Dask's name of its
    worker. device: its board, "" for the worker's own machine. begun: how often it was started.
    trials, total: how many trials were made, and how many are planned. latency_ms: that of the
    model, as far as it is known. records: how many new ones arrived. tuned: the figures of `tune`.
    error, hint, exit_code: those of a job that failed.
    """

    model: str
    target: str
    state: str = "waiting"
    worker: str = ""
    device: str = ""
    begun: Count = 0
    trials: Count = 0
    total: Count = 0
    latency_ms: MsIfKnown = math.nan
    records: Count = 0
    tuned: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    hint: str = ""
    exit_code: int = 0

    @property
    def name(self) -> str:
        """The job's name in messages."""
        return f"{self.model} for {self.target}"


class Jobs(Struct, frozen=True):
    """The answer of `tune --farm --json`."""

    jobs: list[Row]
