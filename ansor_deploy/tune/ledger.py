"""The ledger: what tuning writes into a registry, and what is left to do for a task.

Nothing else writes measurements, records and ends of searches, and nothing else answers whether a
task is finished. No compiler is loaded for that: an unchanged build asks, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib import metadata
from typing import TYPE_CHECKING

from .. import __version__
from ..measure.outcome import INFRASTRUCTURE, Outcome
from ..registry.lookups import FEW
from ..registry.plausible import impossible, least_seconds
from ..registry.record import Measurement, Provenance, Record, SearchEnd, TaskKey
from ..request import Request
from ..space.rule import rules_digest
from .budget_end import is_larger

if TYPE_CHECKING:
    from ..registry.store import Registry

MANY = 1000  # records of a task, of which some may be of no use
FALSE = 3.0  # times as long as claimed: no other machine of the same kind is so much faster
# Ends that no search of this registry came to.
SERVED = "near"  # a neighbour's schedule, or the default one, became the record
LOCKED = "locked"  # a lock brought the record
REVALIDATED = "revalidated"  # a record of another version of TVM proved itself


class Ledger:
    """What a registry holds for one request: its target, rules, search, effort and TVM."""

    def __init__(self, registry: Registry, request: Request, *, measures: bool = False) -> None:
        """measures: code of the target runs, so that a claim must first prove itself."""
        self.registry, self.request, self.measures = registry, request, measures
        self.tvm = metadata.version("apache-tvm")
        self.rules = rules_digest(request.rules, request.target.kind, request.precision)

    # What is known

    def best(self, keys: Iterable[TaskKey]) -> dict[TaskKey, Record]:
        """The best record of each key that has one of this version of TVM.

        What others claim is one only where nothing can be measured.
        """
        keys = list(keys)
        found = self._allowed(keys).items()
        ours = {key: record for key, record in found if not record.claimed}
        return ours if self.measures else {**self.claims(set(keys) - ours.keys()), **ours}

    def _allowed(self, keys: Sequence[TaskKey]) -> dict[TaskKey, Record]:
        """The best record of each key; where computations are to stay as they are, of such."""
        if self.request.precision != "strict":
            return self.registry.best(keys, self.tvm)
        found = ((key, self.registry.top(key, self.tvm, MANY)) for key in dict.fromkeys(keys))
        exact = {key: [one for one in records if not one.rewrites] for key, records in found}
        return {key: records[0] for key, records in exact.items() if records}

    def claims(self, keys: Iterable[TaskKey]) -> dict[TaskKey, Record]:
        """The best that others claim of each key, where nothing that was measured here is faster.

        What no machine can have timed is none, nor what something has beaten here.
        """
        found = ((key, self._claim(key)) for key in dict.fromkeys(keys))
        return {key: claim for key, claim in found if claim}

    def _claim(self, key: TaskKey) -> Record | None:
        known = self.registry.top(key, self.tvm, 1)
        best = min((one.latency for one in known if not one.claimed), default=math.inf)
        claims = self.registry.claims(key, self.tvm, best, FEW)
        if self.request.precision == "strict":
            claims = [one for one in claims if not one.rewrites]
        if not claims:
            return None
        (workload,) = self.registry.workloads([key]).values()  # which a record refers to
        least = least_seconds(workload, self.request.target)
        return next((one for one in claims if not impossible(one.seconds, least)), None)

    def unfinished(self, keys: Iterable[TaskKey]) -> dict[TaskKey, str]:
        """The keys that leave this request something to do, each with the reason.

        A key is finished if it has a record and a search of it has ended with the same rules,
        the same search and the same TVM, under a budget of as many trials or more. One that the
        budget of a run ended is, as long as no larger one is asked for.
        """
        keys = list(keys)
        records = self.best(keys)
        found = {k: self._reason(records[k]) if k in records else "never tuned" for k in keys}
        return {key: reason for key, reason in found.items() if reason}

    def trials(self, keys: Iterable[TaskKey]) -> dict[TaskKey, int]:
        """How many trials count towards each key's limit.

        Those that were made before the rules, the search or TVM changed do not.
        """
        spent = self.registry.trials(keys)
        return {key: max(0, count - self._outdated(key)) for key, count in spent.items()}

    def _reason(self, record: Record) -> str:
        false = not record.claimed and self._lied(record.key)
        ends = [end for end in self.registry.ends(record.key) if not (end.claimed and false)]
        reasons = [self._left_by(end) for end in ends]
        if not reasons:
            return "not finished"
        return "" if "" in reasons else reasons[-1]

    def _lied(self, key: TaskKey) -> bool:
        """Whether nothing that ran here came near the fastest that others claim."""
        known = self.registry.top(key, self.tvm, FEW)
        shown = [seconds for one in known if not one.claimed for seconds in one.seconds]
        return not credible(shown, self.registry.fastest_claim(key, self.tvm))

    def _left_by(self, end: SearchEnd) -> str:
        """Why a search that ended so leaves something to do; "" if it does not."""
        request = self.request
        if changed := self._changed_since(end):
            return changed
        if end.reason == SERVED:
            return "" if request.reuse == "near" else "never searched"
        if is_larger(request.budget, end.reason):
            return "more budget"
        return "" if end.enough_for >= request.budget.per_task else "more effort"

    def _changed_since(self, end: SearchEnd) -> str:
        """What has changed since a search ended that could find better programs now; or ""."""
        if end.tvm != self.tvm:
            return "another TVM"
        if end.rules != self.rules:
            return "rules changed"
        if end.search != self.request.search and end.reason not in (SERVED, LOCKED):
            return "another search"
        return ""

    def _outdated(self, key: TaskKey) -> int:
        """How many trials of a key were made before something changed."""
        ends = self.registry.ends(key)
        return max((end.trials for end in ends if self._changed_since(end)), default=0)

    # What is added

    def provenance(self, found_by: str, device: str) -> Provenance:
        """Where a program that is measured now comes from. found_by: a search, or "default"."""
        seed = self.request.seed
        return Provenance(__version__, self.tvm, found_by, device, seed, now(), self.rules)

    def measured(self, origin: Provenance, device: str) -> Provenance:
        """The same origin of a program that was measured now, with this tool and TVM."""
        here = self.provenance("", device)
        return replace(
            origin, tool=here.tool, tvm=here.tvm, device=here.device, created=here.created
        )

    def add(
        self,
        key: TaskKey,
        outcomes: Sequence[Outcome],
        origin: Callable[[Outcome], Provenance],
        features: Callable[[Outcome], bytes | None],
        worthy: Callable[[Outcome], bool] = lambda outcome: True,
    ) -> list[Record]:
        """Add outcomes as measurements, and those that are right and worthy as records.

        The records are returned. What says nothing of its candidate is left out.
        """
        known = [one for one in outcomes if one.error != INFRASTRUCTURE]
        origins = [origin(one) for one in known]
        measurements = [
            Measurement(key, one.trace, one.seconds, one.error, one.message, where, features(one))
            for one, where in zip(known, origins, strict=True)
        ]
        records = [
            Record(key, one.trace, one.seconds, one.proof, where)
            for one, where in zip(known, origins, strict=True)
            if one.proof and not one.error and worthy(one)
        ]
        self.registry.add_batch(measurements, records)
        return records

    def add_winner(self, record: Record, beaten: Iterable[Record]) -> None:
        """Note that a record was as fast as others, or faster, when they ran in turns."""
        losers = [one.id for one in beaten if one.id != record.id]
        self.registry.add_contest(record, losers, now())

    def add_ends(self, ends: dict[TaskKey, str]) -> None:
        """Note that these tasks' searches are over, each with the reason."""
        spent = self.registry.trials(ends)
        self.registry.add_searches(
            [self._end(key, reason, spent[key]) for key, reason in ends.items()]
        )

    def add_served(self, record: Record) -> None:
        """Note that a task has its record without a search: enough where no more is asked."""
        end = self._end(record.key, SERVED, trials=1)
        self.registry.add_searches([replace(end, search=SERVED, enough_for=0)])

    def add_locked(self, records: Iterable[Record]) -> None:
        """Add records of a lock. Whoever wrote it has tuned them: they are not tuned again.

        A task that this registry has tuned, or that was taken from a lock before, stays as it is.
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

    def add_revalidated(self, record: Record, versions: set[str]) -> None:
        """Note that the search which found a record under another TVM need not be made again."""
        ends = [end for end in self.registry.ends(record.key) if end.tvm in versions]
        if ends:
            last = max(ends, key=lambda end: end.enough_for)
            again = replace(last, tvm=self.tvm, trials=0, reason=REVALIDATED, created=now())
            self.registry.add_searches([again])

    def add_cost(self, trials: int, seconds: float) -> None:
        """Note what trials took, for the price of the next plan. seconds: wall clock."""
        fingerprint, search = self.request.target.fingerprint, self.request.search
        self.registry.add_tuning(fingerprint, search, trials, seconds, now())

    def _searched(self, key: TaskKey) -> bool:
        ends = self.registry.ends(key)
        return any(end.tvm == self.tvm and end.reason != SERVED for end in ends)

    def _end(self, key: TaskKey, reason: str, trials: int) -> SearchEnd:
        search, enough = self.request.search, self.request.budget.per_task
        return SearchEnd(key, self.tvm, search, trials, reason, enough, now(), self.rules)


def credible(shown: Sequence[float], claimed: float) -> bool:
    """Whether a claim's seconds may be true, given the times measured here; none for a failure.

    Machines of one fingerprint differ in clock; whoever errs by more has not measured, and the
    search that is said to have found it is not believed either. The fastest of the times counts:
    on a busy machine the others say how busy it was.
    """
    return min(shown, default=math.inf) <= FALSE * claimed


def now() -> str:
    """The time, as ISO 8601 in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
