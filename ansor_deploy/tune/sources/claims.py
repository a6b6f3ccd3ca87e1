"""Claims of others are measured here, in turns with the default schedule, before they are shipped.

A claim is a record from a bundle, a layer, another registry or a lock. Its outputs are checked like
those of any candidate, and a false time only costs the trial. The outcome here becomes a record of
this registry, which counts for more than any claim.
"""

from collections.abc import Mapping, Sequence

from ...measure.outcome import INFRASTRUCTURE, Outcome
from ...model.tasks import Task
from ...registry.record import Provenance, Record
from ...system.interrupt import check
from ...system.words import count
from ..plan import impacts
from ..standing import credible, records_of
from ..workspace import Workspace
from . import Source, try_out

TRIES = 3  # most claims of a task that a run tries, each if the one before was false
# How often a claim is tried before it counts as false: a busy machine may slow down a true one.
CHANCES = 3


def prove(tasks: Sequence[Task], work: Workspace) -> None:
    """Measure the claims of others on these tasks, the tasks with the largest share of time first.

    Claims on tasks with too small a share of the time are not tried: these tasks get what was
    measured here, or the default schedule. Where nothing here can run the code, a warning says so.
    """
    standing = work.ledger.standing(task.key for task in tasks)
    claims = {key for key, known in standing.items() if known.claim}
    if not claims:
        return
    if work.machine is None:
        what = "as claimed, since nothing here can measure it"
        work.report.warn(f"{count(len(claims), 'record')} of others: used {what}")
        return
    target, least = work.request.target, work.request.budget.min_impact
    shares = impacts(tasks, records_of(standing), target)
    chosen = [task for task in tasks if task.key in claims and shares[task.key] >= least]
    chosen.sort(key=lambda task: (-shares[task.key], task.key))
    if not chosen:
        return
    records = count(len(chosen), "record")
    work.report.stage("prove", f"{records} of others, in turns with the default")
    with work.measuring() as measurer:
        for done, task in enumerate(chosen, 1):
            check()
            try_out(Claims(task, work), measurer)
            work.report.step("records", done, len(chosen))


class Claims(Source):
    """The best claim of others on a task, and the next one if that was false."""

    chances = CHANCES

    def __init__(self, task: Task, work: Workspace) -> None:
        super().__init__(task, work)
        self._tries = TRIES
        self._claim: Record | None = None
        self._true = False

    def propose(self, most: int = 1) -> Mapping[str, Provenance]:
        """One claim; none after a true one."""
        if self._true or not self._tries:
            return {}
        key = self.task.key
        self._tries -= 1
        self._claim = self.work.ledger.standing([key])[key].claim
        return {self._claim.trace: self._claim.provenance} if self._claim else {}

    def doubts(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether the claim runs, but looks false."""
        shown, claim = self._shown(outcomes)
        return not shown.error and not credible(shown.seconds, claim.latency)

    def observe(self, outcomes: Sequence[Outcome]) -> bool:
        """Note whether the claim was true; False where a fault of infrastructure hid it."""
        shown, _ = self._shown(outcomes)
        self._true = not shown.error and not self.doubts(outcomes)
        return shown.error != INFRASTRUCTURE

    def beats(self, record: Record) -> bool:
        """Of the claims, the winner has beaten the one that ran; if that was true, all of them."""
        ran = self._claim is not None and record.id == self._claim.id
        return self._true or ran or not record.claimed

    def _shown(self, outcomes: Sequence[Outcome]) -> tuple[Outcome, Record]:
        assert self._claim is not None  # noqa: S101 - it was proposed
        return next(one for one in outcomes if one.trace == self._claim.trace), self._claim
