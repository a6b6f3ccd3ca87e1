"""All programs of a task, measured once: searches replay these times, so luck plays no part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.tasks import Task
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.target import Target
from ansor_deploy.tune.scheduler import BATCH
from ansor_deploy.tune.search import open_search
from ansor_deploy.tune.search.context import SearchContext
from benchmarks.search import searching
from benchmarks.search.replay import ReplayMeasurer

WORTH = 2.0  # times the best latency; programs up to that run in turns
FAILED = -1.0  # in place of the seconds of a program that fails


@dataclass(frozen=True)
class Space:
    """Seconds of programs by trace. first: those that searches see. again: from turns, if fast."""

    first: dict[str, float]
    again: dict[str, float]

    def outcome(self, trace: str) -> Outcome:
        """The outcome of a program's first measurement."""
        seconds = self.first[trace]
        return Outcome(trace, error="run") if seconds == FAILED else Outcome(trace, (seconds,))

    def judged(self, trace: str) -> float:
        """A program's seconds, from turns with the others unless it is slow."""
        found = self.again.get(trace, self.first[trace])
        return float("inf") if found == FAILED else found


def programs(task: Task, target: Target, most: int, seed: int) -> list[str]:
    """Traces of the task's programs, with the default schedule's first; a random choice if many."""
    context = SearchContext(target, shipped_rules(target.kind), seed)
    search = open_search("ansor", task, [], context)  # it observes nothing, and so draws at random
    found = {searching.default_trace(task, target): None}
    while len(found) < most and (made := search.propose(min(BATCH, most - len(found)))):
        found.update(dict.fromkeys(made))
    return list(found)


def measured(task: Task, traces: Sequence[str], measurer: Measurer) -> Space:
    """Measure every program by itself, as in a search; then those that are not slow, in turns."""
    outcomes = searching.measured(measurer, task, traces)
    first = {one.trace: FAILED if one.error else one.latency for one in outcomes}
    limit = WORTH * min(outcome.latency for outcome in outcomes)
    some = [one.trace for one in outcomes if one.latency <= limit]
    again = measurer.head_to_head(task, list(dict.fromkeys([traces[0], *some])))
    return Space(first, {one.trace: one.latency for one in again if not one.error})


def replayed(spaces: dict[str, Space]) -> ReplayMeasurer:
    """A measurer that replays these times. spaces: by the tasks' workload keys."""
    return ReplayMeasurer(
        (workload, space.outcome(trace))
        for workload, space in spaces.items()
        for trace in space.first
    )
