"""Libraries of a task that are needed again: its references, and its fastest candidates."""

import math
import threading
from collections.abc import Sequence

from ..model.tasks import Task
from ..space.canonical_text import check_text
from .builder import Builder, Building, BuildJob
from .outcome import Outcome

KEEP = 3  # how many of a task's fastest libraries are kept, for turns at the end of its search


class Libraries:
    """The libraries that one builder has built for each task, while they are of use."""

    def __init__(self, builder: Builder) -> None:
        self._builder, self._lock = builder, threading.Lock()
        self._references: dict[tuple[str, str], Building] = {}
        self._fastest: dict[str, dict[str, tuple[float, Building]]] = {}

    def reference(self, task: Task, how: str) -> Building:
        """The task under the schedule "default" or "plain", built once."""
        with self._lock:
            key = (task.workload.key, how)
            found = self._references.get(key)
            if found is None or found.future.cancelled():  # its batch may have been cancelled
                check_text(task.workload.text, task.mod)  # builders get only the text
                found = self._builder.submit(BuildJob(task.workload.text, how))
                self._references[key] = found
            return found

    def build(self, task: Task, trace: str) -> Building:
        """Start to build a candidate."""
        return self._builder.submit(BuildJob(task.workload.text, "trace", trace))

    def kept(self, task: Task, trace: str) -> Building:
        """A candidate's kept library, else a new one."""
        kept = self._fastest_of(task)
        return kept[trace][1] if trace in kept else self.build(task, trace)

    def fastest(self, task: Task, within: float) -> list[str]:
        """Traces of the kept libraries that are within a share of the best, best first."""
        kept = self._fastest_of(task)
        ranked = sorted(kept, key=lambda trace: kept[trace][0])
        return [t for t in ranked if kept[t][0] <= kept[ranked[0]][0] * (1 + within)]

    def keep(
        self,
        task: Task,
        traces: Sequence[str],
        building: Sequence[Building],
        outcomes: Sequence[Outcome],
    ) -> None:
        """Keep the task's fastest libraries, and remove all others.

        building: the build of each trace. outcomes: those of the first traces, as many as have run.
        """
        kept = self._fastest_of(task)
        latencies = [*(one.latency for one in outcomes), *[math.inf] * len(traces)]
        kept.update(zip(traces, zip(latencies, building, strict=False), strict=True))
        for place, trace in enumerate(sorted(kept, key=lambda trace: kept[trace][0])):
            if place >= KEEP or math.isinf(kept[trace][0]):
                kept.pop(trace)[1].remove()

    def _fastest_of(self, task: Task) -> dict[str, tuple[float, Building]]:
        return self._fastest.setdefault(task.workload.key, {})
