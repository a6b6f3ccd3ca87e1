"""The trial of a task: its programs' outcomes are recorded, and the best few run in turns.

Of many candidates that are timed once, the best is the one with the luckiest timing. The fastest
therefore run again, in turns with the previous best and with the default schedule, and win only
where they are surely faster.
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

CLOSE = 0.1  # single timings this close (as a share) may have the wrong order
KNOWN = 256  # most records of a task that a winner is recorded to have beaten
# A challenger must be faster by this share in the median turn.
MARGIN = 0.01
# A challenger may lose this many turns. Nine fair coins show as many heads in one of fifty throws;
# anything less sure counts as noise, and changes nothing.
DOUBTFUL_TURNS = 1


class Judge(Protocol):
    """Gives the outcomes of programs: a `Measurer`, or a file of another machine's outcomes."""

    def measure(self, task: Task, traces: Sequence[str]) -> list[Outcome]:
        """The outcome of each program alone, in order."""

    def fastest(self, task: Task, within: float) -> list[str]:
        """The programs that were the fastest alone, within a share of the best, best first."""

    def head_to_head(self, task: Task, traces: Sequence[str]) -> list[Outcome]:
        """The outcomes of programs that run in turns, so that their times can be compared."""


@dataclass(frozen=True)
class Trial:
    """A task and the judge of its programs. context: knows the features of proposed programs."""

    task: Task
    work: Workspace
    judge: Judge
    context: SearchContext

    @property
    def fastest(self) -> list[str]:
        """The programs that may be the fastest of all that were measured in this run."""
        return self.judge.fastest(self.task, CLOSE)

    def keep(
        self,
        outcomes: Sequence[Outcome],
        origins: Mapping[str, Provenance],
        below: float = math.inf,
    ) -> list[Record]:
        """Add all outcomes as measurements, and right ones as records. Returns these records.

        origins: the origins of programs; those without one are default schedules. below: only a
        program that takes fewer seconds becomes a record.
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
        """The traces that run in turns: the previous best, which wins ties, others, the default."""
        default = self.work.default_trace(self.task)
        incumbent = before.trace if before else default
        return list(dict.fromkeys([incumbent, *challengers, default]))

    def in_turns(self, before: Record | None, challengers: Iterable[str]) -> list[Outcome]:
        """The outcomes of a contest, the incumbent first."""
        return self.judge.head_to_head(self.task, self.contest(before, challengers))


def settle(
    task: Task,
    outcomes: Sequence[Outcome],
    work: Workspace,
    records: Iterable[Record] = (),
    beats: Callable[[Record], bool] = lambda record: not record.claimed,
) -> Record | None:
    """The record that a build is to use: the winner's, with its time in these turns.

    outcomes: of the programs that ran in turns, the incumbent first, which wins a tie. records:
    records that were made of these outcomes already. beats: whether the winner has beaten a known
    record; claims of others have not run. None where no program that runs is known.
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
    """The position of the winner. times: each schedule's seconds by turn; the incumbent's first.

    The incumbent wins unless a challenger is surely faster; of several such, the one with the
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
    """Whether the challenger is faster beyond doubt, compared turn by turn."""
    ratios = [c / i for c, i in zip(challenger, incumbent, strict=True)]
    lost = sum(ratio >= 1 for ratio in ratios)
    return median(ratios) <= 1 - MARGIN and lost <= DOUBTFUL_TURNS
