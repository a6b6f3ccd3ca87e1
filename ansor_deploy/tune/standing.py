"""Standing: what a request knows of each of its tasks, asked in one go.

No compiler is loaded for that: an unchanged build asks, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..registry.lookups import FEW
from ..registry.record import Record, SearchEnd, TaskKey
from ..request import Request
from ..space.rule_files import rules_digest
from ..system.environment import version
from .budget_end import is_larger

if TYPE_CHECKING:
    from ..registry.store import Registry

MANY = 1000  # records of a task, of which some may be of no use
FALSE = 3.0  # times as long as claimed: no other machine of the same kind is so much faster
# Ends that no search of this registry came to.
SERVED = "near"  # a neighbour's schedule, or the default one, became the record
LOCKED = "locked"  # a lock brought the record
REVALIDATED = "revalidated"  # a record of another version of TVM proved itself


@dataclass(frozen=True)
class Standing:
    """What a request knows of one task.

    record: the best, which a build uses; None for the default schedule. claim: what others say to
    be faster than anything that was measured here. reason: why the search is not over; "" where it
    is. spent: trials that count towards the task's limit. measured: all trials that were made.
    """

    record: Record | None
    claim: Record | None
    reason: str
    spent: int
    measured: int


class Standings:
    """What a registry knows for one request: its target, rules, search, effort and TVM."""

    def __init__(self, registry: Registry, request: Request, *, measures: bool = False) -> None:
        """measures: code of the target runs, so that a claim must first prove itself."""
        self.registry, self.request, self.measures = registry, request, measures
        self.tvm = version("apache-tvm")
        self.rules = rules_digest(request.rules, request.target.kind, request.precision)

    def standing(self, keys: Iterable[TaskKey]) -> dict[TaskKey, Standing]:
        """Where each task stands now."""
        measured = self.registry.trials(dict.fromkeys(keys))
        return {key: self._standing(key, trials) for key, trials in measured.items()}

    def best(self, keys: Iterable[TaskKey]) -> dict[TaskKey, Record]:
        """The best record of each key that has one of this version of TVM.

        What others claim is one only where nothing can be measured.
        """
        return records_of(self.standing(keys))

    def _standing(self, key: TaskKey, measured: int) -> Standing:
        ours, ends = self._ours(key), self.registry.ends(key)
        claim = self._claim(key, ours.latency if ours else math.inf)
        record = ours if ours or self.measures else claim
        # Trials that were made before the rules, the search or TVM changed do not count.
        outdated = max((end.trials for end in ends if self._changed_since(end)), default=0)
        reason = self._reason(record, ends) if record else "never tuned"
        return Standing(record, claim, reason, max(0, measured - outdated), measured)

    def _ours(self, key: TaskKey) -> Record | None:
        """The best record that was measured here, of those that the request allows."""
        strict = self.request.precision == "strict"
        known = self.registry.top(key, self.tvm, MANY if strict else 1)
        return next((one for one in self._allowed(known) if not one.claimed), None)

    def _claim(self, key: TaskKey, best: float) -> Record | None:
        """The best that others claim of a key, below the seconds of what was measured here.

        What no machine can have timed is none, nor what something has beaten here or what made no
        code.
        """
        if not self.registry.claims(key, self.tvm, best, 1):
            return None
        unfit = self.registry.unfit(key)
        claims = self.registry.claims(key, self.tvm, best, FEW + len(unfit))
        claims = [one for one in self._allowed(claims) if one.trace not in unfit]
        if not claims:
            return None
        (workload,) = self.registry.workloads([key]).values()  # which a record refers to
        target = self.request.target
        return next((one for one in claims if not workload.impossible(one.seconds, target)), None)

    def _allowed(self, records: list[Record]) -> list[Record]:
        """Where computations are to stay as they are, the records that leave them so."""
        strict = self.request.precision == "strict"
        return [one for one in records if not (strict and one.rewrites)]

    def _reason(self, record: Record, ends: Sequence[SearchEnd]) -> str:
        """Why the search of a task with a record is not over; "" where it is.

        It is if a search has ended with the same rules, the same search and the same TVM, under a
        budget of as many trials or more. One that the budget of a run ended is over as long as no
        larger one is asked for.
        """
        claimed = any(end.claimed for end in ends)
        false = claimed and not record.claimed and self._lied(record.key)
        reasons = [self._left_by(end) for end in ends if not (end.claimed and false)]
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


def records_of(standing: Mapping[TaskKey, Standing]) -> dict[TaskKey, Record]:
    """The records of the tasks that have one."""
    return {key: known.record for key, known in standing.items() if known.record}


def credible(shown: Sequence[float], claimed: float) -> bool:
    """Whether a claim's seconds may be true, given the times measured here; none for a failure.

    Machines of one fingerprint differ in clock; whoever errs by more has not measured, and the
    search that is said to have found it is not believed either. The fastest of the times counts:
    on a busy machine the others say how busy it was.
    """
    return min(shown, default=math.inf) <= FALSE * claimed
