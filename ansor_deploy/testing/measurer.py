"""The contract of a measurer: what a search may rely on, whatever builds and runs the programs."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ..measure.outcome import KINDS, Outcome
from ..model.tasks import Task

NO_PROGRAM = "no trace of anything"


class MeasurerContract(ABC):
    """Tests that every measurer passes; a subclass says which one is tested, and with what.

    A measurer is a context manager with a method `measure(task, traces, best)`, which returns an
    `Outcome` for each trace, in order; `best` is the fewest seconds known, and only a hint. What
    goes wrong with a program is an outcome with an error, and never an exception.
    """

    @abstractmethod
    def measurer(self) -> Any:
        """A measurer that is not open yet."""

    @abstractmethod
    def task(self) -> Task:
        """A task that it can measure."""

    @abstractmethod
    def traces(self) -> Sequence[str]:
        """Two schedules of the task, or more, that build and run."""

    def test_each_trace_gets_an_outcome_in_order(self) -> None:
        """The same trace twice gets two outcomes, whatever becomes of another between them."""
        first, second, *_ = self.traces()
        asked = [second, first, NO_PROGRAM, first]
        with self.measurer() as measurer:
            outcomes = measurer.measure(self.task(), asked)
        assert [outcome.trace for outcome in outcomes] == asked
        assert [bool(outcome.error) for outcome in outcomes] == [False, False, True, False]
        for outcome in outcomes:
            check_outcome(outcome)

    def test_a_failure_hinders_no_later_batch(self) -> None:
        """An empty batch has no outcomes, and a best that no program reaches hinders none."""
        first, *_ = self.traces()
        with self.measurer() as measurer:
            (failed,) = measurer.measure(self.task(), [NO_PROGRAM])
            assert measurer.measure(self.task(), []) == []
            (after,) = measurer.measure(self.task(), [first], best=1e-9)
        assert failed.error
        assert after.seconds, "a program that is slower than the best is measured all the same"

    def test_it_can_be_closed_twice(self) -> None:
        """The second time is the end of its block."""
        with self.measurer() as measurer:
            measurer.close()
        measurer.close()


def check_outcome(outcome: Outcome) -> None:
    """Either there are times, all of them positive, or an error of a known kind that says why."""
    if outcome.error:
        assert outcome.error in KINDS, outcome.error
        assert outcome.message, f"{outcome.error}: without a message nobody knows why"
        assert math.isinf(outcome.latency)
    else:
        assert outcome.seconds
        assert all(0 < seconds < math.inf for seconds in outcome.seconds)
