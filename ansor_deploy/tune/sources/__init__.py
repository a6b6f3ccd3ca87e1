"""Sources: where programs of a task come from that are worth a try without a search.

A new one is a file of this folder. All are tried in one way: measured, recorded, settled in turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..search.context import SearchContext
from ..trial import Trial, settle

if TYPE_CHECKING:
    from ...measure.measurer import Measurer
    from ...measure.outcome import Outcome
    from ...model.tasks import Task
    from ...registry.record import Provenance, Record
    from ..workspace import Workspace


class Source:
    """Where programs of one task come from.

    alone: whether each is measured by itself first, so that one that crashes or hangs costs the
    others nothing; else all run in turns at once.
    """

    alone = False

    def __init__(self, task: Task) -> None:
        self.task = task

    def propose(self) -> Mapping[str, Provenance]:
        """Programs by their traces, and where each comes from; none where there are no more."""
        return {}

    def doubts(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether a busy machine may have shown these outcomes, so that they are measured again."""
        return False

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learn what the last proposals showed."""

    def beats(self, record: Record) -> bool:
        """Whether what wins in turns has beaten a known record: what others claim did not run."""
        return not record.claimed

    def end(self, best: Record | None) -> None:
        """Note what it means that there are no more. best: what a build uses from now on."""


def try_out(source: Source, work: Workspace, measurer: Measurer) -> Record | None:
    """Try all that a source proposes: what a build uses from now on; None for no record."""
    trial = Trial(source.task, work, measurer, SearchContext(work.request.target, ()))
    key, ledger = source.task.key, work.ledger
    best = ledger.best([key]).get(key)
    while proposed := source.propose():
        if source.alone:
            outcomes = measurer.measure(source.task, list(proposed))
            records, kept = trial.keep(outcomes, proposed), []
            source.observe(outcomes)
            if not records:
                continue
            # What was the best there stands unless something else surely is, as in a search.
            outcomes = trial.in_turns(best or records[0], trial.fastest)
        else:
            outcomes = trial.in_turns(best, proposed)
            while source.doubts(outcomes):
                outcomes = trial.in_turns(best, proposed)
            kept = trial.keep(outcomes, proposed)
            source.observe(outcomes)
        best = settle(key, outcomes, ledger, kept, source.beats)
    source.end(best)
    return best
