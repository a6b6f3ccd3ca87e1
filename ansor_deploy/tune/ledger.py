"""The ledger writes what tuning learns into a registry.

Nothing else writes measurements, records and ends of searches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from .. import __version__
from ..registry.lookups import UNFIT
from ..registry.record import Measurement, Provenance, Record, SearchEnd, TaskKey
from .standing import LOCKED, REVALIDATED, SERVED, Standings

if TYPE_CHECKING:
    from ..measure.outcome import Outcome


class Ledger(Standings):
    """The standings of one request, and the only writer of what tuning learns."""

    def provenance(
        self, found_by: str, device: str, derived_by: tuple[str, ...] = ()
    ) -> Provenance:
        """The origin of a program that is measured now. found_by: a search, or "default".

        derived_by: the names of the rules that derived it.
        """
        words = (__version__, self.tvm, found_by, device, self.request.seed, now(), self.rules)
        return Provenance(*words, derived_by)

    def measured(self, origin: Provenance, device: str) -> Provenance:
        """The same origin for a program that was measured now, with this tool and TVM."""
        here = self.provenance("", device)
        return replace(
            origin, tool=here.tool, tvm=here.tvm, device=here.device, created=here.created, clock=0
        )

    def add(
        self,
        key: TaskKey,
        outcomes: Sequence[Outcome],
        origin: Callable[[Outcome], Provenance],
        features: Callable[[Outcome], bytes | None],
        below: float = math.inf,
    ) -> list[Record]:
        """Add outcomes as measurements, and right ones as records. Returns these records.

        below: only a program that takes fewer seconds becomes a record. Failures of infrastructure
        say nothing about a candidate and are left out.
        """
        from ..measure.outcome import INFRASTRUCTURE  # an unchanged build measures nothing

        known = [one for one in outcomes if one.error != INFRASTRUCTURE]
        origins = [replace(origin(one), clock=one.clock) for one in known]
        measurements = [
            Measurement(key, one.trace, one.seconds, one.error, one.message, where, features(one))
            for one, where in zip(known, origins, strict=True)
        ]
        records = [
            Record(key, one.trace, one.seconds, one.proof, where)
            for one, where in zip(known, origins, strict=True)
            if one.proof and one.latency < below
        ]
        self.registry.add_batch(measurements, records)
        return records

    def add_winner(self, record: Record, beaten: Iterable[Record]) -> None:
        """Record that one record was as fast as others, or faster, when they ran in turns."""
        losers = [one.id for one in beaten if one.id != record.id]
        self.registry.add_contest(record, losers, now())

    def add_ends(self, ends: dict[TaskKey, str]) -> None:
        """Record that these tasks' searches are over, each with the reason."""
        spent = self.registry.trials(ends)
        self.registry.add_searches(
            [self._end(key, reason, spent[key]) for key, reason in ends.items()]
        )

    def add_served(self, record: Record) -> None:
        """Record that a task got a record without a search, which is enough for `--reuse near`."""
        end = self._end(record.key, SERVED, trials=1)
        self.registry.add_searches([replace(end, search=SERVED, enough_for=0)])

    def add_locked(self, records: Iterable[Record]) -> None:
        """Add records of a lock, and the ends of their searches: they are not tuned again here.

        The search of a task that this registry has tuned, or took from a lock before, stays as it
        is.
        """
        records = list(records)
        self.registry.add_batch([], records)
        new = [one for one in records if not self._searched(one.key)]
        ends = [
            replace(
                self._end(one.key, LOCKED, trials=0),
                search=one.provenance.search,
                created=one.provenance.created,
                claimed=one.claimed,
            )
            for one in new
        ]
        self.registry.add_searches(ends)

    def put_aside(self, claims: Iterable[tuple[Record, str]]) -> None:
        """Record that claims make no code, and why: from then on they count as no claims."""
        failed = [
            Measurement(one.key, one.trace, (), UNFIT, why, self.measured(one.provenance, ""))
            for one, why in claims
        ]
        self.registry.add_batch(failed, [])

    def add_revalidated(self, record: Record, versions: set[str]) -> None:
        """Record that the search that found a record under another TVM need not be repeated."""
        ends = [end for end in self.registry.ends(record.key) if end.tvm in versions]
        if ends:
            last = max(ends, key=lambda end: end.enough_for)
            again = replace(last, tvm=self.tvm, trials=0, reason=REVALIDATED, created=now())
            self.registry.add_searches([again])

    def add_cost(self, trials: int, seconds: float) -> None:
        """Record how long trials took, for the estimate of the next plan. seconds: wall clock."""
        fingerprint, search = self.request.target.fingerprint, self.request.search
        self.registry.add_tuning(fingerprint, search, trials, seconds, now())

    def _searched(self, key: TaskKey) -> bool:
        ends = self.registry.ends(key)
        return any(end.tvm == self.tvm and end.reason != SERVED for end in ends)

    def _end(self, key: TaskKey, reason: str, trials: int) -> SearchEnd:
        search, enough = self.request.search, self.request.budget.per_task
        return SearchEnd(key, self.tvm, search, trials, reason, enough, now(), self.rules)


def now() -> str:
    """The time, as ISO 8601 in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
