"""Sources propose programs of a task that are worth a trial. Each has a file in this folder.

All proposals are tried in one way: measured, recorded, and settled in turns. `try_out` does that
for one task until a source has no more; `rounds.py` does it for many tasks at once, in batches that
the scheduler assigns.
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
    """Proposes programs of one task.

    context: knows the features of proposed programs. alone: whether each program is measured by
    itself first, so that one that crashes or hangs costs the others nothing; else all run in turns
    at once. improves: whether only programs faster than the best become records. chances: how often
    programs run in turns while the source doubts their outcomes.
    """

    alone = False
    improves = False
    chances = 1

    def __init__(self, task: Task, work: Workspace, context: SearchContext | None = None) -> None:
        self.task, self.work = task, work
        self.context = context or SearchContext(work.request.target, ())

    def propose(self, most: int = 1) -> Mapping[str, Provenance]:
        """Programs by their traces, each with its origin; {} where there are no more.

        most: how many a source should give that always has more.
        """
        return {}

    def doubts(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether these outcomes may be due to a busy machine."""
        return False

    def observe(self, outcomes: Sequence[Outcome]) -> bool:
        """Learn from the outcomes of the last proposals; False ends the trial without recording."""
        return True

    def beats(self, record: Record) -> bool:
        """Whether the winner in turns has beaten a known record: claims of others did not run."""
        return not record.claimed

    def end(self, best: Record | None) -> None:
        """Act on the end of the proposals. best: the record that a build uses from now on."""


def try_out(source: Source, judge: Judge) -> Record | None:
    """Try all proposals of a source. Returns the record that a build uses from now on, or None."""
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
        # Known programs have run beside the new ones, and keep their origins.
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
    """The outcomes of programs in turns with the best; repeated while the source doubts them."""
    for _ in range(source.chances):
        outcomes = trial.in_turns(best, traces)
        if not source.doubts(outcomes):
            break
    return outcomes


def _fastest_in_turns(trial: Trial, before: Record | None) -> list[Outcome]:
    """The outcomes of the fastest programs in turns with the previous best; [] without either.

    before: the record that wins unless another program is surely faster.
    """
    fastest = trial.fastest
    return trial.in_turns(before, fastest) if before and fastest else []
