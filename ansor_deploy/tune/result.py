"""What a tuning run did, as commands print it."""

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
    """One decision of the tuning's scheduler, and what came of it.

    title, key: of the task's workload.
    """

    task: str
    title: str
    key: Digest
    trials: Count
    why: str
    best_ms: MsIfKnown
    end_to_end_ms: MsIfKnown


class Tuned(Struct, frozen=True, kw_only=True):
    """What a build or a tuning run did. no_room: tasks that no device had memory to try.

    kept_default: tasks that were to be tuned and have their default schedule as the best. origins:
    null where it did not look anything up, as a frozen build.
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
    """What a pack has for its machine to measure. folder: of the pack."""

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
    """What a run spent, batch by batch. seconds: wall clock."""

    trials: int = 0
    seconds: float = 0.0
    rounds: tuple[Round, ...] = ()


class TuneResult(Tuned, frozen=True, kw_only=True):
    """The same within the program. latency_ms: the models' estimate under their records.

    latencies_ms: of each model, in their order. rounds: the scheduler's decisions, in order.
    records: the best of each task afterwards.
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
        """What was spent on a plan. records: the best of its tasks now."""
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
        """Whether tasks were tuned, and each of them has its default schedule still."""
        return 0 < self.misses <= self.kept_default

    @classmethod
    def untuned(
        cls, tasks: int, hits: int, latency_ms: float = math.nan, found: Origins | None = None
    ) -> TuneResult:
        """Of a build that tuned nothing."""
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
        """The figures, as they stand in a manifest."""
        return Tuned(**{name: getattr(self, name) for name in Tuned.__struct_fields__})
