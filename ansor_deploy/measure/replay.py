"""A measurer that never runs anything: it answers from recorded measurements.

With it a search can be tried, and repeated exactly, without a clock. What was never recorded
takes the time that a model says, or comes back with the error "unmeasured", which is no
measurement: a search learns nothing from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ..errors import UsageError
from ..model.tasks import Task
from ..registry.store import Registry
from ..target import Target
from .outcome import UNMEASURED, Outcome

_FIELDS = ("trace", "seconds", "error", "message")


class ReplayMeasurer:
    """Answers from recorded measurements. A context manager, as `Measurer` is.

    recorded: a workload's key and an outcome, for each measurement; of several of one trace
    the last counts. otherwise: a model of the time, in seconds, of what was not recorded.
    """

    def __init__(
        self,
        recorded: Iterable[tuple[str, Outcome]],
        otherwise: Callable[[Task, str], float] | None = None,
    ) -> None:
        self._recorded = {(workload, outcome.trace): outcome for workload, outcome in recorded}
        self._otherwise = otherwise

    @classmethod
    def of_registry(cls, registry: Registry, target: Target) -> ReplayMeasurer:
        """All that a registry has measured for a target."""
        found = registry.measurements(target.fingerprint)
        return cls(
            (one.key.workload, Outcome(one.trace, one.seconds, one.error, one.message))
            for one in found
        )

    @classmethod
    def of_file(cls, path: Path) -> ReplayMeasurer:
        """The measurements that `save` wrote; UsageError, with the line, where there are none."""
        lines = path.read_text(encoding="utf-8").splitlines()
        return cls(_parsed(path, number, line) for number, line in enumerate(lines, start=1))

    def save(self, path: Path) -> None:
        """Write one JSON object a line: workload, trace, seconds, error, message."""
        with path.open("w", encoding="utf-8") as file:
            for (workload, _), outcome in self._recorded.items():
                plain = {name: getattr(outcome, name) for name in _FIELDS}
                file.write(json.dumps({"workload": workload, **plain}, sort_keys=True) + "\n")

    def __enter__(self) -> ReplayMeasurer:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """There is nothing to close; as of `Measurer`."""

    def measure(self, task: Task, traces: Sequence[str], best: float = math.inf) -> list[Outcome]:
        """A recorded outcome a trace, in order; the error "unmeasured" where there is none."""
        return [self._answer(task, trace) for trace in traces]

    def _answer(self, task: Task, trace: str) -> Outcome:
        known = self._recorded.get((task.workload.key, trace))
        if known is not None:
            return known
        if self._otherwise is not None:
            return Outcome(trace, (self._otherwise(task, trace),))
        return Outcome(trace, error=UNMEASURED, message="it was never recorded")


def _parsed(path: Path, number: int, line: str) -> tuple[str, Outcome]:
    try:
        data = json.loads(line)
        trace, seconds, error, message = (data[name] for name in _FIELDS)
        return data["workload"], Outcome(trace, tuple(map(float, seconds)), error, message)
    except (ValueError, TypeError, KeyError) as fault:
        raise UsageError(
            f"{path}:{number}: no recorded measurement: {fault}",
            "record the measurements again",
        ) from fault
