"""Measure candidates on this machine: build them all, then run one at a time."""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..target import Target
from .build import Builder, BuildFailure, BuildJob, Built
from .outcome import Outcome
from .signature import Signature, signature
from .worker import Worker, WorkerFailure

if TYPE_CHECKING:
    from ..model.tasks import Task

LEAST_SECONDS = 5.0
PLAIN_SECONDS = 60.0
MOST_SECONDS = 600.0
_PATIENCE = 60.0
_ASSUMED_SLOWER = 20.0  # than the roofline, a candidate of a task without any result


@dataclass(frozen=True)
class _Reference:
    """Expected outputs of a task. oracle: "default" or "plain", the schedule they are of."""

    oracle: str
    path: Path
    failure: tuple[str, str] = ("", "")  # error and message, where there are no outputs


class LocalMeasurer:
    """Builds and runs candidates here, with the target's cores. A context manager.

    Times are of warm caches: the same tensors are used in every run, as in a benchmark loop,
    and a kernel that follows others in a network may be slower. Builds and runs never overlap.
    Every candidate's outputs are compared with those of the default schedule before it is timed;
    on the first that differs, the unscheduled program decides which of the two is wrong.

    seed: of the inputs. Files lie in one temporary folder, which `close` removes.
    """

    def __init__(self, target: Target, seed: int = 0) -> None:
        self._target = target
        self._seed = seed
        self._folder = Path(tempfile.mkdtemp(prefix="ansor-deploy-measure-"))
        self._builder = Builder(target, self._folder)
        # TVM takes half of the cores on x86 unless it is told, before its first parallel loop.
        self._runner = Worker({"TVM_NUM_THREADS": str(target.cores)})
        self._names = itertools.count()
        self._references: dict[str, _Reference] = {}
        self._arbitrated: set[str] = set()
        self._signatures: dict[str, Signature] = {}

    def __enter__(self) -> LocalMeasurer:  # noqa: PYI034 - Self is newer than Python 3.10
        try:
            self._builder.start()
            self._runner.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill the workers and remove every file. May be called twice."""
        self._builder.close()
        self._runner.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def measure(self, task: Task, traces: Sequence[str], best: float = math.inf) -> list[Outcome]:
        """An outcome a trace, in order; a failure is an outcome and never an exception.

        best: seconds of the best candidate known; one that is clearly slower gets one repeat.
        AnsorError where this machine cannot build at all.
        """
        key = task.workload.key
        jobs = [BuildJob(task.workload.text, "trace", trace) for trace in traces]
        if key not in self._references:
            jobs.insert(0, BuildJob(task.workload.text, "default"))
        built = self._builder.build(jobs)
        if key not in self._references:
            self._references[key] = self._first_reference(task, built.pop(0))
        outcomes = []
        for trace, library in zip(traces, built, strict=True):
            outcomes.append(replace(self._outcome(task, library, best), trace=trace))
            best = min(best, outcomes[-1].latency)
        return outcomes

    def _outcome(self, task: Task, built: Built | BuildFailure, best: float) -> Outcome:
        if isinstance(built, BuildFailure):
            return Outcome("", error=built.error, message=built.message)
        try:
            outcome = self._checked(task, built, best)
            if outcome.error == "wrong-output" and self._arbitrate(task):
                outcome = self._checked(task, built, best)
        finally:
            built.path.unlink(missing_ok=True)
        return outcome

    def _checked(self, task: Task, built: Built, best: float) -> Outcome:
        reference = self._references[task.workload.key]
        if reference.failure[0]:
            kind, message = reference.failure
            return Outcome("", error=kind, message=f"no reference to check against: {message}")
        payload = self._payload(task, built, reference.path)
        payload["best"] = best if math.isfinite(best) else None
        try:
            found = self._run(payload, self._deadline(task, best))
        except WorkerFailure as failure:
            return Outcome("", error=_kind(failure), message=failure.message)
        return self._told(found, reference.oracle)

    def _run(self, payload: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Run a candidate, twice if it crashes: the one before may have left a broken heap."""
        function = "ansor_deploy.measure.runner:run"
        try:
            found = self._runner.call(function, payload, timeout)
        except WorkerFailure as failure:
            if failure.kind != "crash":
                raise
            found = self._runner.call(function, payload, timeout)
        finally:
            self._runner.start()  # in the background, where it had to be killed
        if found["error"] == "wrong-output":  # who knows what else it wrote to
            self._runner.kill()
            self._runner.start()
        return found

    def _told(self, found: dict[str, Any], oracle: str) -> Outcome:
        proof = None
        if found["errors"] is not None:
            proof = {"oracle": oracle, "seed": self._seed, **found["errors"]}
        seconds = tuple(found["seconds"])
        return Outcome("", seconds, found["error"], found["message"], proof)

    def _first_reference(self, task: Task, built: Built | BuildFailure) -> _Reference:
        """Of the default schedule; of the plain program where that one fails."""
        reference = self._reference(task, "default", built, self._deadline(task, math.inf))
        return self._plain_reference(task) if reference.failure[0] else reference

    def _plain_reference(self, task: Task) -> _Reference:
        (built,) = self._builder.build([BuildJob(task.workload.text, "plain")])
        return self._reference(task, "plain", built, PLAIN_SECONDS)

    def _reference(
        self, task: Task, oracle: str, built: Built | BuildFailure, timeout: float
    ) -> _Reference:
        path = self._folder / f"expected-{next(self._names)}.npz"
        if isinstance(built, BuildFailure):
            return _Reference(oracle, path, (built.error, built.message))
        payload = self._payload(task, built, path)
        try:
            self._runner.call("ansor_deploy.measure.runner:reference", payload, timeout)
        except WorkerFailure as failure:
            return _Reference(oracle, path, (_kind(failure), failure.message))
        finally:
            built.path.unlink(missing_ok=True)
        return _Reference(oracle, path)

    def _arbitrate(self, task: Task) -> bool:
        """Make the plain program's outputs the reference, once a task; whether that was done."""
        key = task.workload.key
        if key in self._arbitrated or self._references[key].oracle == "plain":
            return False
        self._arbitrated.add(key)
        plain = self._plain_reference(task)
        if plain.failure[0]:  # it takes too long, or fails: the default schedule is believed
            return False
        self._references[key].path.unlink(missing_ok=True)
        self._references[key] = plain
        return True

    def _payload(self, task: Task, built: Built, expected: Path) -> dict[str, Any]:
        key = task.workload.key
        if key not in self._signatures:
            self._signatures[key] = signature(task.mod)
        return {
            "path": str(built.path),
            "steps": list(built.steps),
            "signature": self._signatures[key].to_json(),
            "seed": self._seed,
            "expected": str(expected),
        }

    def _deadline(self, task: Task, best: float) -> float:
        """Seconds until a run counts as hung: many times what is expected of it."""
        expected = best if math.isfinite(best) else _ASSUMED_SLOWER * task.roofline(self._target)
        return min(max(LEAST_SECONDS, _PATIENCE * expected), MOST_SECONDS)


def _kind(failure: WorkerFailure) -> str:
    return "run" if failure.kind == "raised" else failure.kind
