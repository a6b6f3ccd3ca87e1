"""Search: which programs to measure next. One small interface, several implementations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ...errors import UsageError

if TYPE_CHECKING:
    from ...measure.outcome import Outcome
    from ...model.tasks import Task
    from ...registry.record import Measurement
    from .context import SearchContext


class Search(Protocol):
    """Proposes candidates of one task and learns from their measurements."""

    def propose(self, count: int) -> list[str]:
        """Up to `count` traces not proposed before; empty when the space is exhausted."""

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from the outcomes of the last proposals."""


SEARCHES = ("ansor", "metaschedule")


def has_first_guess(name: str, task: Task, context: SearchContext) -> bool:
    """Whether a search can choose a task's first program before any was measured.

    If not, the default schedule is the best first program.
    """
    return name == "ansor" and bool(context.experiences(task))


def open_search(
    name: str, task: Task, known: Sequence[Measurement], context: SearchContext
) -> Search:
    """The search with this name for a task. known: earlier measurements of the task.

    UsageError where there is no such search.
    """
    if name == "ansor":
        from .ansor import AnsorSearch

        return AnsorSearch(task, known, context)
    if name == "metaschedule":
        from .metaschedule import MetaScheduleSearch

        return MetaScheduleSearch(task, context.target, known, context.seed)
    raise UsageError(f"no search is called {name}", f"there are: {', '.join(SEARCHES)}")
