"""Sources: where programs of a task come from that are worth a try.

A new one is a file of this folder. All are tried in one way: measured, recorded, settled in turns.
`try_out` does that to one task until a source has no more; `rounds.py` to many tasks at once, a
batch to each as the scheduler has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..search.context import SearchContext
from ..trial import KNOWN, Judge, Trial, settle

if TYPE_CHECKING:
    from ...measure.outcome import Outcome
    from ...model.tasks import Task
    from ...registry.record import Provenance, Record
    from ..workspace import Workspace


class Source:
    """Where programs of one task come from.

    context: knows the features of what is proposed. alone: whether each is measured by itself
    first, so that one that crashes or hangs costs the others nothing; else all run in turns at
    once. improves: whether only what is faster than the best becomes a record. chances: times that
    programs run in turns while the source doubts what they show.
    """

    alone = False
    improves = False
    chances = 1

    def __init__(self, task: Task, work: Workspace, context: SearchContext | None = None) -> None:
        self.task, self.work = task, work
        self.context = context or SearchContext(work.request.target, ())

    def propose(self, most: int = 1) -> Mapping[str, Provenance]:
        """Programs by their traces, and where each comes from; none where there are no more.

        most: of a source that always has more.
        """
        return {}

    def doubts(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether these outcomes may be due to a busy machine."""
        return False

    def observe(self, outcomes: Sequence[Outcome]) -> bool:
        """Learn what the last proposals showed; False where nothing is to be made of that."""
        return True

    def beats(self, record: Record) -> bool:
        """Whether what wins in turns has beaten a known record: what others claim did not run."""
        return not record.claimed

    def end(self, best: Record | None) -> None:
        """Note what it means that there are no more. best: what a build uses from now on."""


def try_out(source: Source, judge: Judge) -> Record | None:
    """Try all that a source proposes: what a build uses from now on; None for no record."""
    task, ledger = source.task, source.work.ledger
    trial = Trial(task, source.work, judge, source.context)
    best = ledger.standing([task.key])[task.key].record
    while proposed := source.propose():
        if source.alone:
            outcomes = judge.measure(task, list(proposed))
        else:
            outcomes = _in_turns(source, trial, best, proposed)
        if not source.observe(outcomes):
            break
        # What is known has run beside them, and stays what it was.
        known = ledger.registry.top(task.key, ledger.tvm, KNOWN)
        origins = {**proposed, **{one.trace: one.provenance for one in known}}
        below = best.latency if best and source.improves else math.inf
        kept = trial.keep(outcomes, origins, below)
        if source.alone:
            outcomes = _fastest_in_turns(trial, best or next(iter(kept), None))
            best = settle(task, outcomes, source.work, beats=source.beats) if outcomes else best
        elif kept:
            best = settle(task, outcomes, source.work, kept, source.beats)
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


def _fastest_in_turns(trial: Trial, before: Record | None) -> list[Outcome]:
    """What the fastest show in turns with what was the best, as after a search; or nothing.

    before: what stands unless something else is surely faster.
    """
    fastest = trial.fastest
    return trial.in_turns(before, fastest) if before and fastest else []
