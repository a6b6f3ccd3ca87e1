"""A measurer that runs nothing: it answers from recorded measurements.

With it a search can be tried, and repeated exactly, without a clock. A candidate that was never
recorded gets the time of a model, or the error "unmeasured", which is no measurement: a search
learns nothing from it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from ansor_deploy.measure.outcome import UNMEASURED, Outcome
from ansor_deploy.model.tasks import Task


class ReplayMeasurer(AbstractContextManager["ReplayMeasurer"]):
    """Answers from recorded measurements. A context manager, as `Measurer` is.

    recorded: a workload's key and an outcome for each measurement; of several with one trace, the
    last counts. otherwise: a model of the seconds of candidates that were not recorded.
    """

    def __init__(
        self,
        recorded: Iterable[tuple[str, Outcome]],
        otherwise: Callable[[Task, str], float] | None = None,
    ) -> None:
        self._recorded = {(workload, outcome.trace): outcome for workload, outcome in recorded}
        self._otherwise = otherwise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing; `Measurer` has this method."""

    def measure(self, task: Task, traces: Sequence[str], best: float = math.inf) -> list[Outcome]:
        """The recorded outcome of each trace, in order; the error "unmeasured" without one."""
        return [self._answer(task, trace) for trace in traces]

    def _answer(self, task: Task, trace: str) -> Outcome:
        known = self._recorded.get((task.workload.key, trace))
        if known is not None:
            return known
        if self._otherwise is not None:
            return Outcome(trace, (self._otherwise(task, trace),))
        return Outcome(trace, error=UNMEASURED, message="it was never recorded")
