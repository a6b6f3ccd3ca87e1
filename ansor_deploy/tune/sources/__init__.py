"""Sources: where programs of a task come from that are worth a try without a search.

A new one is a file of this folder. All are tried in one way: measured, recorded, settled in turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..search.context import SearchContext
from ..trial import KNOWN, Trial, settle

if TYPE_CHECKING:
    from ...measure.measurer import Measurer
    from ...measure.outcome import Outcome
    from ...model.tasks import Task
    from ...registry.record import Provenance, Record
    from ..workspace import Workspace


class Source:
    """Where programs of one task come from.

    alone: whether each is measured by itself first, so that one that crashes or hangs costs the
    others nothing; else all run in turns at once. chances: times that these are run while the
    source doubts what they show.
    """

    alone = False
    chances = 1

    def __init__(self, task: Task) -> None:
        self.task = task

    def propose(self) -> Mapping[str, Provenance]:
        """Programs by their traces, and where each comes from; none where there are no more."""
        return {}

    def doubts(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether a busy machine may have shown these outcomes."""
        return False

    def observe(self, outcomes: Sequence[Outcome]) -> bool:
        """Learn what the last proposals showed; False where nothing is to be made of that."""
        return True

    def beats(self, record: Record) -> bool:
        """Whether what wins in turns has beaten a known record: what others claim did not run."""
        return not record.claimed

    def end(self, best: Record | None) -> None:
        """Note what it means that there are no more. best: what a build uses from now on."""


def try_out(source: Source, work: Workspace, measurer: Measurer) -> Record | None:
    """Try all that a source proposes: what a build uses from now on; None for no record."""
    task, ledger = source.task, work.ledger
    trial = Trial(task, work, measurer, SearchContext(work.request.target, ()))
    best = ledger.standing([task.key])[task.key].record
    while proposed := source.propose():
        if source.alone:
            outcomes = measurer.measure(task, list(proposed))
        else:
            outcomes = _in_turns(source, trial, best, proposed)
        if not source.observe(outcomes):
            break
        # What is known has run beside them, and stays what it was.
        known = ledger.registry.top(task.key, ledger.tvm, KNOWN)
        kept = trial.keep(outcomes, {**proposed, **{one.trace: one.provenance for one in known}})
        if kept and source.alone:
            # What was the best there stands unless something else surely is, as in a search.
            outcomes = trial.in_turns(best or kept[0], trial.fastest)
            best = settle(task.key, outcomes, ledger, beats=source.beats)
        elif kept:
            best = settle(task.key, outcomes, ledger, kept, source.beats)
    source.end(best)
    return best


def _in_turns(
    source: Source, trial: Trial, best: Record | None, traces: Iterable[str]
) -> list[Outcome]:
    """What programs show in turns with the best, the last time that it was asked."""
    for _ in range(source.chances):
        outcomes = trial.in_turns(best, traces)
        if not source.doubts(outcomes):
            break
    return outcomes
