"""The trial of a task: what programs showed is recorded, and the best few run in turns.

A single timing is a lucky one: of many candidates, the best is the one with the luckiest timing. So
the fastest run in turns with what stood before and with the default schedule, and stand only where
they are surely faster.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from ..measure.outcome import Outcome
from ..model.tasks import Task
from ..registry.record import Provenance, Record
from .search.context import SearchContext
from .workspace import Workspace

CLOSE = 0.1  # share within which a single timing may be wrong about who is faster
KNOWN = 256  # records of a task that the winner is noted to have beaten
# A challenger must be faster by this share, in all turns but one: nine fair coins show as many
# heads in one of fifty throws. What is less sure is noise, and noise changes nothing.
MARGIN = 0.01
DOUBTFUL_TURNS = 1


class Judge(Protocol):
    """Says what programs showed: a `Measurer`, or a file of what one on another machine has."""

    def measure(self, task: Task, traces: Sequence[str]) -> list[Outcome]:
        """An outcome of each program alone, in order."""

    def fastest(self, task: Task, within: float) -> list[str]:
        """Those that were the fastest alone, within a share of the best, best first."""

    def head_to_head(self, task: Task, traces: Sequence[str]) -> list[Outcome]:
        """Outcomes of programs in turns, so that their times can be compared."""


@dataclass(frozen=True)
class Trial:
    """A task before its judge. context: knows the features of what was proposed."""

    task: Task
    work: Workspace
    judge: Judge
    context: SearchContext

    @property
    def fastest(self) -> list[str]:
        """What may be the fastest of all that was measured in this run."""
        return self.judge.fastest(self.task, CLOSE)

    def keep(
        self,
        outcomes: Sequence[Outcome],
        origins: Mapping[str, Provenance],
        below: float = math.inf,
    ) -> list[Record]:
        """Add all outcomes as measurements, and of those that are right the records.

        origins: where programs come from; the others are default schedules. below: seconds that
        none takes which becomes a record.
        """
        ledger = self.work.ledger

        def origin(one: Outcome) -> Provenance:
            known = origins.get(one.trace) or self.work.default_origin(self.task)
            return ledger.measured(known, one.device)

        return ledger.add(
            self.task.key,
            outcomes,
            origin,
            lambda one: self.context.features(self.task, one.trace),
            below,
        )

    def contest(self, before: Record | None, challengers: Iterable[str]) -> list[str]:
        """What runs in turns: what stood before, which a tie leaves there, and the default, too."""
        default = self.work.default_trace(self.task)
        incumbent = before.trace if before else default
        return list(dict.fromkeys([incumbent, *challengers, default]))

    def in_turns(self, before: Record | None, challengers: Iterable[str]) -> list[Outcome]:
        """What a contest showed, the incumbent first."""
        return self.judge.head_to_head(self.task, self.contest(before, challengers))


def settle(
    task: Task,
    outcomes: Sequence[Outcome],
    work: Workspace,
    records: Iterable[Record] = (),
    beats: Callable[[Record], bool] = lambda record: not record.claimed,
) -> Record | None:
    """The record that a build is to use: of the winner, with the time that it takes now.

    outcomes: of what ran in turns, the incumbent first; a tie is the incumbent's. records: what was
    made of them already. beats: which of the known records the winner has beaten; what others claim
    has not run. None where nothing that runs is known.
    """
    key, ledger = task.key, work.ledger
    won = outcomes[winner([outcome.seconds for outcome in outcomes])]
    known = ledger.registry.top(key, ledger.tvm, KNOWN)
    if won.error or not won.proof:
        return known[0] if known else None
    record = next((one for one in records if one.trace == won.trace), None)
    if record is None:
        origins = (one.provenance for one in known if one.trace == won.trace)
        origin = ledger.measured(next(origins, None) or work.default_origin(task), won.device)
        record = Record(key, won.trace, won.seconds, won.proof, origin)
    ledger.add_winner(record, filter(beats, known))
    return record


def winner(times: Sequence[Sequence[float]]) -> int:
    """Position of the schedule that stands. times: seconds in each turn; the incumbent's first.

    The incumbent stands unless a challenger is surely faster; of several such, the one with the
    smallest median wins. A schedule without times has failed and cannot win.
    """
    incumbent = times[0]
    sure = [
        at
        for at, challenger in enumerate(times)
        if at and challenger and (not incumbent or faster(challenger, incumbent))
    ]
    return min(sure, key=lambda at: median(times[at]), default=0)


def faster(challenger: Sequence[float], incumbent: Sequence[float]) -> bool:
    """Whether turn by turn the challenger is faster beyond doubt."""
    ratios = [c / i for c, i in zip(challenger, incumbent, strict=True)]
    lost = sum(ratio >= 1 for ratio in ratios)
    return median(ratios) <= 1 - MARGIN and lost <= DOUBTFUL_TURNS
