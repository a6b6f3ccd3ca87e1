"""Standing: what a request knows about each of its tasks, looked up in one go.

No compiler is loaded for this, since an unchanged build needs it too.
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

MANY = 1000  # records of a task to look at where the request may not allow some of them
FALSE = 3.0  # a claim is false if its program takes more than this many times as long here
# Reasons of ends that are not from a search of this registry.
SERVED = "near"  # a neighbour's schedule, or the default one, became the record
LOCKED = "locked"  # a lock brought the record
REVALIDATED = "revalidated"  # a record of another version of TVM proved itself


@dataclass(frozen=True)
class Standing:
    """What a request knows about one task.

    record: the best record, which a build uses; None for the default schedule. claim: a record of
    others that claims to be faster than anything measured here. reason: why the search is not over;
    "" where it is. spent: trials that count towards the task's limit. measured: all trials so far.
    """

    record: Record | None
    claim: Record | None
    reason: str
    spent: int
    measured: int


class Standings:
    """What a registry knows for one request, with its target, rules, search, effort and TVM."""

    def __init__(self, registry: Registry, request: Request, *, measures: bool = False) -> None:
        """measures: whether code of the target runs, so that a claim must first prove itself."""
        self.registry, self.request, self.measures = registry, request, measures
        self.tvm = version("apache-tvm")
        self.rules = rules_digest(request.rules, request.target.kind, request.precision)

    def standing(self, keys: Iterable[TaskKey]) -> dict[TaskKey, Standing]:
        """The present standing of each task."""
        measured = self.registry.trials(dict.fromkeys(keys))
        return {key: self._standing(key, trials) for key, trials in measured.items()}

    def best(self, keys: Iterable[TaskKey]) -> dict[TaskKey, Record]:
        """The best record of each key that has one of this version of TVM.

        A claim counts as a record only where nothing can be measured.
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
        """The best record that was measured here and that the request allows."""
        strict = self.request.precision == "strict"
        known = self.registry.top(key, self.tvm, MANY if strict else 1)
        return next((one for one in self._allowed(known) if not one.claimed), None)

    def _claim(self, key: TaskKey, best: float) -> Record | None:
        """The best claim of others on a key that is faster than `best`, in seconds.

        Left out are claims with times that no machine can reach, claims that were beaten here, and
        claims that made no code.
        """
        if not self.registry.claims(key, self.tvm, best, 1):
            return None
        unfit = self.registry.unfit(key)
        claims = self.registry.claims(key, self.tvm, best, FEW + len(unfit))
        claims = [one for one in self._allowed(claims) if one.trace not in unfit]
        if not claims:
            return None
        (workload,) = self.registry.workloads([key]).values()  # it exists: records refer to it
        target = self.request.target
        return next((one for one in claims if not workload.impossible(one.seconds, target)), None)

    def _allowed(self, records: list[Record]) -> list[Record]:
        """The records that the request allows: with `--precision strict`, none that rewrites."""
        strict = self.request.precision == "strict"
        return [one for one in records if not (strict and one.rewrites)]

    def _reason(self, record: Record, ends: Sequence[SearchEnd]) -> str:
        """Why the search of a task with a record is not over; "" where it is.

        It is over if a search has ended with the same rules, search and TVM, and with at least as
        many trials allowed for the task. A search that a run's budget ended is over until a larger
        budget is given.
        """
        claimed = any(end.claimed for end in ends)
        false = claimed and not record.claimed and self._lied(record.key)
        reasons = [self._left_by(end) for end in ends if not (end.claimed and false)]
        if not reasons:
            return "not finished"
        return "" if "" in reasons else reasons[-1]

    def _lied(self, key: TaskKey) -> bool:
        """Whether nothing that ran here came near the fastest claim."""
        known = self.registry.top(key, self.tvm, FEW)
        shown = [seconds for one in known if not one.claimed for seconds in one.seconds]
        return not credible(shown, self.registry.fastest_claim(key, self.tvm))

    def _left_by(self, end: SearchEnd) -> str:
        """Why a search with this ending should go on; "" if it is complete."""
        request = self.request
        if changed := self._changed_since(end):
            return changed
        if end.reason == SERVED:
            return "" if request.reuse == "near" else "never searched"
        if is_larger(request.budget, end.reason):
            return "more budget"
        return "" if end.enough_for >= request.budget.per_task else "more effort"

    def _changed_since(self, end: SearchEnd) -> str:
        """What has changed since a search ended, so that it might find better programs; or ""."""
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
    """Whether a claim's seconds may be true, given the times measured here.

    shown: these times; empty for a failure. Machines of one fingerprint differ in clock, but by
    less than FALSE: a claim that is off by more was not measured, and the search that is said to
    have found it does not count either. Only the fastest time is compared, since on a busy machine
    the others show how busy it was.
    """
    return min(shown, default=math.inf) <= FALSE * claimed
