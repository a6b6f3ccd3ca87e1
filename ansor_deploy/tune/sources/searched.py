"""The proposals of a search, after one program as a cheap first look at its task."""

from collections.abc import Mapping, Sequence

from ...measure.outcome import Outcome
from ...model.tasks import Task
from ...registry.record import Provenance
from ..search import Search, has_first_guess, open_search
from ..search.context import SearchContext
from ..workspace import Workspace
from . import Source


class Searched(Source):
    """A first look at a task, by its search's first guess or its default schedule; then its search.

    search: the search, once it has begun; the scheduler ends it.
    """

    alone = True
    improves = True

    def __init__(self, task: Task, work: Workspace, context: SearchContext, *, known: bool) -> None:
        """known: whether the task has a record, and so needs no first look."""
        super().__init__(task, work, context)
        self.search: Search | None = None
        self._known = known

    def propose(self, most: int = 1) -> Mapping[str, Provenance]:
        """One program at first, then up to `most`."""
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
        """Let the search learn from the outcomes of its proposals."""
        if self.search is not None:
            self.search.observe(outcomes)
        return True
