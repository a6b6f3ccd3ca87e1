"""What others claim proves itself here, in turns with the default schedule, before it is shipped.

A claim is a record of a bundle, a layer, another registry or a lock. Its outputs are checked as
those of any candidate, and a false time costs the trial alone. What it shows here becomes a record
of this registry, which counts for more than any claim.
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

TRIES = 3  # claims of a task that one run tries, where those before them were false
# Times that a claim is tried before it counts as false: a busy machine may deny a true one once.
CHANCES = 3


def prove(tasks: Sequence[Task], work: Workspace) -> None:
    """Measure what others claim of these tasks, those first that matter most.

    Of tasks that are too small a share of the time nothing is tried: they get what was measured
    here, or the default schedule. Where nothing here can run the code, a warning says so.
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
    """The best that others claim of a task, and the next where that was false."""

    chances = CHANCES

    def __init__(self, task: Task, work: Workspace) -> None:
        super().__init__(task, work)
        self._tries = TRIES
        self._claim: Record | None = None
        self._true = False

    def propose(self, most: int = 1) -> Mapping[str, Provenance]:
        """One claim: none after a true one."""
        if self._true or not self._tries:
            return {}
        key = self.task.key
        self._tries -= 1
        self._claim = self.work.ledger.standing([key])[key].claim
        return {self._claim.trace: self._claim.provenance} if self._claim else {}

    def doubts(self, outcomes: Sequence[Outcome]) -> bool:
        """Of a claim that runs and looks false."""
        shown, claim = self._shown(outcomes)
        return not shown.error and not credible(shown.seconds, claim.latency)

    def observe(self, outcomes: Sequence[Outcome]) -> bool:
        """Note whether the claim was what it said to be; False where nothing was seen of it."""
        shown, _ = self._shown(outcomes)
        self._true = not shown.error and not self.doubts(outcomes)
        return shown.error != INFRASTRUCTURE

    def beats(self, record: Record) -> bool:
        """Of what others claim that which has run, and all of it where that was true."""
        ran = self._claim is not None and record.id == self._claim.id
        return self._true or ran or not record.claimed

    def _shown(self, outcomes: Sequence[Outcome]) -> tuple[Outcome, Record]:
        assert self._claim is not None  # noqa: S101 - it was proposed
        return next(one for one in outcomes if one.trace == self._claim.trace), self._claim
