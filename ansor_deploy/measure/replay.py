"""Measurements of the past given again: a measurer that never runs anything.

A search can so be tried, and repeated exactly, without a clock. What was never recorded takes
the time that a model says, or comes back with the error "unmeasured", which is no measurement
and teaches a search nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .outcome import UNMEASURED, Outcome

if TYPE_CHECKING:
    from ..model.tasks import Task
    from ..registry.record import Measurement
    from ..registry.store import Registry
    from ..target import Target

_FIELDS = ("seconds", "error", "message")


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
        return cls((one.key.workload, _outcome(one)) for one in found)

    @classmethod
    def of_file(cls, path: Path) -> ReplayMeasurer:
        """What `save` wrote; UsageError, with the line, where that is not what it holds."""
        lines = path.read_text(encoding="utf-8").splitlines()
        return cls(_parsed(path, number, line) for number, line in enumerate(lines, start=1))

    def save(self, path: Path) -> None:
        """Write one JSON object a line: workload, trace, seconds, error, message."""
        lines = [
            json.dumps({"workload": workload, "trace": trace, **_plain(outcome)}, sort_keys=True)
            for (workload, trace), outcome in self._recorded.items()
        ]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def __enter__(self) -> ReplayMeasurer:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """There is nothing to close."""

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


def _outcome(measured: Measurement) -> Outcome:
    return Outcome(measured.trace, measured.seconds, measured.error, measured.message)


def _plain(outcome: Outcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in _FIELDS}


def _parsed(path: Path, number: int, line: str) -> tuple[str, Outcome]:
    try:
        data = json.loads(line)
        seconds = tuple(float(second) for second in data["seconds"])
        outcome = Outcome(data["trace"], seconds, data["error"], data["message"])
        return data["workload"], outcome
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{path}:{number}: no recorded measurement: {error}",
            "record the measurements again",
        ) from error
