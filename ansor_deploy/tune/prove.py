"""What others claim proves itself here, in turns with the default schedule, before it is shipped.

A claim is a record of a bundle, a layer, another registry or a lock. Its outputs are checked as
those of any candidate, and a false time costs the trial alone. What it shows here becomes a record
of this registry, which counts for more than any claim.
"""

from collections.abc import Sequence
from dataclasses import replace

from ..measure.measurer import Measurer
from ..measure.outcome import INFRASTRUCTURE, Outcome
from ..model.tasks import Task
from ..registry.record import Provenance, Record
from ..system.interrupt import check
from ..system.words import count
from .final import KNOWN, winner
from .ledger import credible
from .plan import impacts
from .search.context import SearchContext
from .workspace import Workspace

TRIES = 3  # claims of a task that one run tries, where those before them were false
# Times that a claim is tried before it counts as false: a busy machine may deny a true one once.
CHANCES = 3


def prove(tasks: Sequence[Task], work: Workspace) -> None:
    """Measure what others claim of these tasks, those first that matter most.

    Of tasks that are too small a share of the time nothing is tried: they get what was measured
    here, or the default schedule. Where nothing here can run the code, a warning says so.
    """
    claims = work.ledger.claims(task.key for task in tasks)
    if not claims:
        return
    if work.machine is None:
        what = "as claimed, since nothing here can measure it"
        work.report.warn(f"{count(len(claims), 'record')} of others: used {what}")
        return
    target, least = work.request.target, work.request.budget.min_impact
    shares = impacts(tasks, work.ledger.best(task.key for task in tasks), target)
    chosen = [task for task in tasks if task.key in claims and shares[task.key] >= least]
    chosen.sort(key=lambda task: (-shares[task.key], task.key))
    if not chosen:
        return
    records = count(len(chosen), "record")
    work.report.stage("prove", f"{records} of others, in turns with the default")
    with work.measuring() as measurer:
        for done, task in enumerate(chosen, 1):
            check()
            _Trial(task, work, measurer).hold()
            work.report.step("records", done, len(chosen))


class _Trial:
    """One task's claims before the measurer."""

    def __init__(self, task: Task, work: Workspace, measurer: Measurer) -> None:
        self._task, self._ledger, self._measurer = task, work.ledger, measurer
        self._default = work.default_trace(task)
        self._context = SearchContext(work.request.target, ())

    def hold(self) -> None:
        """Try the best claim, and the next where it was false."""
        key = self._task.key
        for _ in range(TRIES):
            claim = self._ledger.claims([key]).get(key)
            if claim is None or self._settled_by(claim):
                return

    def _settled_by(self, claim: Record) -> bool:
        """Run a claim in turns with what stood before; whether it was what it said to be."""
        key, ledger = self._task.key, self._ledger
        before = ledger.best([key]).get(key)
        incumbent = before.trace if before else self._default
        traces = list(dict.fromkeys([incumbent, claim.trace, self._default]))
        outcomes = self._in_turns(traces, claim)
        shown = outcomes[traces.index(claim.trace)]
        if shown.error == INFRASTRUCTURE:
            return True  # it says nothing of the claim, which stays one
        true = not shown.error and credible(shown.seconds, claim.latency)
        known = ledger.registry.top(key, ledger.tvm, KNOWN)
        beaten = [one for one in known if true or not one.claimed or one.id == claim.id]
        self._keep(outcomes, {one.trace: one.provenance for one in (claim, *known)}, beaten)
        return true

    def _in_turns(self, traces: Sequence[str], claim: Record) -> list[Outcome]:
        """What schedules show in turns, again where the claim runs but looks false."""
        for _ in range(CHANCES):
            outcomes = self._measurer.head_to_head(self._task, traces, self._default)
            shown = outcomes[traces.index(claim.trace)]
            if shown.error or credible(shown.seconds, claim.latency):
                break
        return outcomes

    def _keep(
        self, outcomes: Sequence[Outcome], found: dict[str, Provenance], beaten: Sequence[Record]
    ) -> None:
        """Add what they showed, and that the winner has beaten these records."""
        ledger = self._ledger

        def origin(one: Outcome) -> Provenance:
            here = ledger.provenance("default", one.device)
            then = found.get(one.trace, here)
            return replace(then, tool=here.tool, device=here.device, created=here.created)

        features = lambda one: self._context.features(self._task, one.trace)  # noqa: E731
        records = ledger.add(self._task.key, outcomes, origin, features)
        won = outcomes[winner([one.seconds for one in outcomes])]
        for record in records:
            if record.trace == won.trace:
                ledger.add_winner(record, [*beaten, *records])
