"""The end of a task's search: its best few in turns with each other and with what stood before.

A single timing is a lucky one: of many candidates, the best is the one with the luckiest timing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from ..measure.measurer import Batch, Measurer
from ..measure.outcome import Outcome
from ..model.tasks import Task
from ..registry.record import Record, TaskKey
from .ledger import Ledger

CLOSE = 0.1  # share within which a single timing may be wrong about who is faster
KNOWN = 256  # records of a task that the winner is noted to have beaten
# A challenger must be faster by this share, in all turns but one: nine fair coins show as many
# heads in one of fifty throws. What is less sure is noise, and noise changes nothing.
MARGIN = 0.01
DOUBTFUL_TURNS = 1


@dataclass(frozen=True)
class Final:
    """A task's finalists under way. before: the best record of before this run."""

    task: Task
    before: Record | None
    batch: Batch


def begin_final(task: Task, before: Record | None, default: str, measurer: Measurer) -> Final:
    """Let the fastest few run in turns with the incumbent, and with the default schedule anyway.

    The incumbent is the best record of before this run, else the default schedule. default: the
    latter's trace.
    """
    incumbent = before.trace if before else default
    traces = list(dict.fromkeys([incumbent, *measurer.fastest(task, CLOSE), default]))
    return Final(task, before, measurer.submit_head_to_head(task, traces, default))


def end_final(final: Final, measurer: Measurer, ledger: Ledger) -> Record | None:
    """The record that a build is to use: of the winner, with the time that it takes now.

    A tie is the incumbent's. None where nothing that runs is known.
    """
    return settle(final.task.key, measurer.wait(final.batch), ledger)


def settle(key: TaskKey, outcomes: Sequence[Outcome], ledger: Ledger) -> Record | None:
    """As `end_final`, of what ran in turns, the incumbent first."""
    won = outcomes[winner([outcome.seconds for outcome in outcomes])]
    known = ledger.registry.top(key, ledger.tvm, KNOWN)
    if won.error or not won.proof:
        return known[0] if known else None
    here = ledger.provenance("default", won.device)
    found = next((one.provenance for one in known if one.trace == won.trace), here)
    measured = replace(found, tool=here.tool, device=here.device, created=here.created)
    record = Record(key, won.trace, won.seconds, won.proof, measured)
    # What others claim has not run: `prove` says what is to become of that.
    ledger.add_winner(record, [one for one in known if not one.claimed])
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
