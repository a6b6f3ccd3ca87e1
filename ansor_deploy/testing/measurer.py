"""The contract of a measurer: what a search relies on, however programs are built and run."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ..measure.outcome import KINDS, Outcome
from ..model.tasks import Task

NO_PROGRAM = "no trace of anything"  # what no measurer can read as a trace


class MeasurerContract(ABC):
    """Tests that every measurer passes; a subclass provides the measurer and its input.

    A measurer is a context manager with a method `measure(task, traces, best)`, which returns an
    `Outcome` for each trace, in order; `best`, the least seconds known, is only a hint. A program's
    failure is an outcome with an error, and never an exception.
    """

    @abstractmethod
    def measurer(self) -> Any:
        """A measurer that is not open yet."""

    @abstractmethod
    def task(self) -> Task:
        """A task that the measurer can measure."""

    @abstractmethod
    def traces(self) -> Sequence[str]:
        """At least two schedules of the task that build and run."""

    def test_each_trace_gets_an_outcome_in_order(self) -> None:
        """A trace that is given twice gets two outcomes, even with a failure between them."""
        first, second, *_ = self.traces()
        asked = [second, first, NO_PROGRAM, first]
        with self.measurer() as measurer:
            outcomes = measurer.measure(self.task(), asked)
        assert [outcome.trace for outcome in outcomes] == asked
        assert [bool(outcome.error) for outcome in outcomes] == [False, False, True, False]
        for outcome in outcomes:
            check_outcome(outcome)

    def test_a_failure_hinders_no_later_batch(self) -> None:
        """Neither a failure, an empty batch nor an unreachable `best` affects later programs."""
        first, *_ = self.traces()
        with self.measurer() as measurer:
            (failed,) = measurer.measure(self.task(), [NO_PROGRAM])
            assert measurer.measure(self.task(), []) == []
            (after,) = measurer.measure(self.task(), [first], best=1e-9)
        assert failed.error
        assert after.seconds, "a program that is slower than the best is measured all the same"

    def test_it_can_be_closed_twice(self) -> None:
        """It is closed within its block, by the end of the block, and once more after that."""
        with self.measurer() as measurer:
            measurer.close()
        measurer.close()


def check_outcome(outcome: Outcome) -> None:
    """Check that an outcome has positive times, or an error of a known kind with a message."""
    if outcome.error:
        assert outcome.error in KINDS, outcome.error
        assert outcome.message, f"{outcome.error}: without a message nobody knows why"
        assert math.isinf(outcome.latency)
    else:
        assert outcome.seconds
        assert all(0 < seconds < math.inf for seconds in outcome.seconds)
