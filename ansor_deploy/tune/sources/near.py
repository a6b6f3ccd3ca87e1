"""A task without a search: a neighbour's schedule, made to fit, serves it at once.

It runs in turns with the default schedule, which becomes the record unless the other is surely
faster.
"""

from collections.abc import Mapping, Sequence

from ...model.tasks import Task
from ...registry.record import Provenance, Record
from ...space.trace import dump
from ..search.neighbours import Neighbour
from ..search.refit import fitting
from ..workspace import Workspace
from . import Source


class Near(Source):
    """The nearest neighbour's best schedule that fits a task, and at least its default one."""

    def __init__(self, task: Task, neighbours: Sequence[Neighbour], work: Workspace) -> None:
        super().__init__(task)
        self._neighbours, self._work = neighbours, work
        self._left = True

    def propose(self) -> Mapping[str, Provenance]:
        """Once: what fits, and the default schedule."""
        if not self._left:
            return {}
        self._left, origin = False, self._work.ledger.provenance
        default = {self._work.default_trace(self.task): origin("default", "")}
        words = (self.task, self._neighbours, self._work.request.target, self._work.rules)
        near = next((dump(sch.trace) for _, sch in fitting(*words)), None)
        return default if near is None else {near: origin("near", "")} | default

    def end(self, best: Record | None) -> None:
        """The task is served, where it has a record."""
        if best is not None:
            self._work.ledger.add_served(best)
