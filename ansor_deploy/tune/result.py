"""The types of a tuning run's results, as commands print them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ..system.json_types import Count, Digest, Ms, MsIfKnown, Seconds
from .hits import Origins

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..registry.record import Record, TaskKey
    from .plan import Plan


@dataclass(frozen=True)
class Round:
    """One decision of the task scheduler, and its result.

    title, key: those of the task's workload.
    """

    task: str
    title: str
    key: Digest
    trials: Count
    why: str
    best_ms: MsIfKnown
    end_to_end_ms: MsIfKnown


class Tuned(Struct, frozen=True, kw_only=True):
    """The figures of a build or a tuning run. no_room: tasks that no device had the memory to try.

    kept_default: how many tasks were to be tuned and still have their default schedule as the best.
    origins: null where no schedules were looked up, as in a frozen build.
    """

    tasks: Count
    hits: Count
    misses: Count
    skipped: Count
    trials: Count
    tune_seconds: Seconds
    latency_ms: Ms | None
    no_room: tuple[Digest, ...]
    kept_default: Count
    origins: Origins | None = None


@dataclass(frozen=True)
class Packed:
    """The contents of a pack, for its machine to measure. folder: the pack's folder."""

    folder: Path
    tasks: Count
    candidates: Count


class PackAnswer(Tuned, frozen=True):
    """`tune --pack --json`."""

    pack: Packed


class Tune(Tuned, frozen=True):
    """`tune --json`."""

    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class Spent:
    """The trials and time that a run spent. seconds: wall clock. rounds: its batches."""

    trials: int = 0
    seconds: float = 0.0
    rounds: tuple[Round, ...] = ()


class TuneResult(Tuned, frozen=True, kw_only=True):
    """`Tuned` with more, for use within the program.

    latency_ms: the models' estimate under their records. latencies_ms: the same for each model, in
    their order. rounds: the scheduler's decisions, in order. records: the best of each task
    afterwards.
    """

    latency_ms: float
    no_room: tuple[str, ...] = ()
    kept_default: int = 0
    latencies_ms: tuple[float, ...] = ()
    rounds: tuple[Round, ...] = ()
    records: Mapping[TaskKey, Record] = {}

    @classmethod
    def of_plan(
        cls,
        plan: Plan,
        spent: Spent,
        records: Mapping[TaskKey, Record],
        no_room: Sequence[str] = (),
    ) -> TuneResult:
        """The result of tuning a plan. records: the best of its tasks now."""
        now = plan.under(records)
        missed = [row.task.key for row in plan.rows if row.status in ("miss", "near")]
        known = [records[key] for key in missed if key in records]
        return cls(
            tasks=len(plan.rows),
            hits=plan.count("hit"),
            misses=len(missed),
            skipped=plan.count("skip"),
            trials=spent.trials,
            tune_seconds=round(spent.seconds, 3),
            latency_ms=now.latency * 1e3,
            latencies_ms=tuple(latency * 1e3 for latency in now.latencies),
            rounds=spent.rounds,
            no_room=tuple(no_room),
            kept_default=sum(one.provenance.search == "default" for one in known),
            origins=plan.origins,
            records=records,
        )

    @property
    def gained_nothing(self) -> bool:
        """Whether tasks were tuned, and all of them still have their default schedule."""
        return 0 < self.misses <= self.kept_default

    @classmethod
    def untuned(
        cls, tasks: int, hits: int, latency_ms: float = math.nan, found: Origins | None = None
    ) -> TuneResult:
        """The result of a build that tuned nothing."""
        return cls(
            tasks=tasks,
            hits=hits,
            misses=0,
            skipped=tasks - hits,
            trials=0,
            tune_seconds=0.0,
            latency_ms=latency_ms,
            origins=found,
        )

    @property
    def figures(self) -> Tuned:
        """The figures, as a manifest has them."""
        return Tuned(**{name: getattr(self, name) for name in Tuned.__struct_fields__})
