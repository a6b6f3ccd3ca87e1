"""What a search proposes, after one program as a cheap look at its task."""

from collections.abc import Mapping, Sequence

from ...measure.outcome import Outcome
from ...model.tasks import Task
from ...registry.record import Provenance
from ..search import Search, has_first_guess, open_search
from ..search.context import SearchContext
from ..workspace import Workspace
from . import Source


class Searched(Source):
    """A look at a task, its relatives' best or its default schedule, and then its search.

    search: once it was begun. What it comes to is the scheduler's to say, who ends it.
    """

    alone = True
    improves = True

    def __init__(self, task: Task, work: Workspace, context: SearchContext, *, known: bool) -> None:
        """known: the task has a record, and needs no look."""
        super().__init__(task, work, context)
        self.search: Search | None = None
        self._known = known

    def propose(self, most: int = 1) -> Mapping[str, Provenance]:
        """One program at first, then as many as are asked for."""
        name, origin = self.work.request.search, self.work.ledger.provenance
        if not self._known:
            self._known, most = True, 1
            if not has_first_guess(name, self.task, self.context):
                trace = self.work.default_trace(self.task)
                return {trace: self.work.default_origin(self.task)}
        if self.search is None:
            key = self.task.key
            measured = list(self.work.registry.measurements(key.target, key))
            self.search = open_search(name, self.task, measured, self.context)
        proposed = self.search.propose(most)
        return {one: origin(name, "", self.context.rules_of(self.task, one)) for one in proposed}

    def observe(self, outcomes: Sequence[Outcome]) -> bool:
        """The search learns from all that it has proposed."""
        if self.search is not None:
            self.search.observe(outcomes)
        return True
