"""Runs built candidates on one site and compares their outputs with a reference."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from ..codegen.kernels.signature import signature
from ..devices.site import Site
from ..errors import AnsorError, DeviceLost, MachineError
from ..model.tasks import Task
from ..runtime.tensors import Signature
from ..system.run_times import impossible
from ..system.worker import WorkerFailure
from ..target import Target
from .builder import Built, Failure
from .memory import room_for_copies
from .outcome import INFRASTRUCTURE, Outcome

Oracle = Callable[[Task, str], "Built | Failure"]

LEAST_SECONDS = 5.0
PLAIN_SECONDS = 60.0
MOST_SECONDS = 600.0
TRIES = 3  # of a run with impossible times
_PATIENCE = 60.0
_MOST_OUTPUTS = 1 << 34  # bytes
# Without any result of a task, a candidate is assumed to take this many times the roofline.
_ASSUMED_SLOWER = 20.0
_RUNNER = "ansor_deploy.measure.runner"
_IN_TURNS = "ansor_deploy.measure.head_to_head"


@dataclass(frozen=True)
class _Reference:
    """The expected outputs of a task, in a file of the site at `path`.

    oracle: the schedule that computed them, "default" or "plain". failure: why there are none.
    """

    oracle: str
    path: str
    failure: Failure | None = None


class SiteRunner:
    """Runs candidates of any task on a site, one at a time.

    Times are as in the task's network: weights are as cold as its other kernels leave them. Every
    candidate's outputs are compared with those of the default schedule before it is timed. For the
    first one that differs, the unscheduled program decides which of the two is wrong.

    seed: the seed of the inputs. oracle: gives a task's library under the schedule "default" or
    "plain". Every method raises DeviceLost when the site is at fault.
    """

    def __init__(self, site: Site, target: Target, seed: int, oracle: Oracle) -> None:
        self.site = site
        self._target, self._seed, self._oracle = target, seed, oracle
        self._machine = "cpu" if target.gpu is None else "gpu"
        self._references: dict[str, _Reference] = {}
        self._arbitrated: set[str] = set()
        self._kernel = ""  # the reference kernel's path on the site

    def run(self, task: Task, built: Built | Failure, trace: str, best: float) -> Outcome:
        """The outcome of a candidate. best: seconds; a clearly slower candidate runs only once."""
        if isinstance(built, Failure):
            return self._outcome(trace, built)
        outcome = self._checked(task, built, trace, best)
        if outcome.error == "wrong-output" and self._arbitrate(task):
            outcome = self._checked(task, built, trace, best)
        return outcome

    def expected(self, task: Task) -> tuple[str, bytes]:
        """The oracle of a task, "default" or "plain", and the bytes of the file with its outputs.

        AnsorError where neither oracle runs.
        """
        reference = self._reference_of(task)
        if missing := reference.failure:
            what = f"{task.name}: no reference to check against: {missing.message}"
            raise AnsorError(what, "report the model, please")
        return reference.oracle, self.site.get(reference.path, _MOST_OUTPUTS)

    def head_to_head(
        self, task: Task, built: Sequence[Built | Failure], traces: Sequence[str]
    ) -> list[Outcome]:
        """Time libraries in turns: an outcome for each, with times that can be compared."""
        reference = self._reference_of(task)
        fit = [one for one in built if isinstance(one, Built)]
        with self._on_site(*fit) as candidates:
            payload = {**self._payload(task, reference.path), "candidates": candidates}
            patience = self._deadline(task, math.inf) * len(fit)
            run = partial(self.site.call, f"{_IN_TURNS}:head_to_head", payload, patience)
            try:
                found = self._possible(task, run)
            except WorkerFailure as failure:  # it is not known which library is the cause
                found = [Failure(INFRASTRUCTURE, failure.message)] * len(fit)
        answers = iter(found)
        results = [one if isinstance(one, Failure) else next(answers) for one in built]
        pairs = zip(traces, results, strict=True)
        return [self._outcome(trace, result, reference.oracle) for trace, result in pairs]

    def pulse(self, kernel: Built, spec: Signature) -> float:
        """Seconds that the reference kernel takes now. WorkerFailure where it does not run."""
        if not self._kernel:
            self._kernel = self.site.put(kernel.path)
        payload: dict[str, Any] = {"path": self._kernel, "steps": list(kernel.steps)}
        payload |= {"signature": spec.to_json(), "seed": self._seed, "machine": self._machine}
        seconds = self._twice(f"{_IN_TURNS}:pulse", payload, LEAST_SECONDS * 6)
        if wrong := impossible([seconds]):
            raise self._wrong_clock(wrong)
        return float(seconds)

    def _possible(self, task: Task, run: Callable[[], Any]) -> Any:
        """The answers of a run, which is repeated if a time is impossible for any machine.

        In that case the clock was set during the run; if it happens again, the site is at fault.
        """
        workload = task.workload
        for _ in range(TRIES):
            answers = run()
            times = [answer["seconds"] for answer in answers if not answer["error"]]
            wrong = [workload.impossible(seconds, self._target) for seconds in times]
            if not any(wrong):
                return answers
        raise self._wrong_clock(next(filter(None, wrong)))

    def _wrong_clock(self, wrong: str) -> AnsorError:
        what, hint = f"{self.site.name}: its clock cannot be believed: {wrong}", "look at its clock"
        return DeviceLost(what, hint) if self.site.remote else MachineError(what, hint)

    @contextmanager
    def _on_site(self, *libraries: Built) -> Iterator[list[dict[str, Any]]]:
        """Keep libraries on the site, and give them in the form of the worker's payloads."""
        paths = [self.site.put(one.path) for one in libraries]
        steps = [list(one.steps) for one in libraries]
        try:
            yield [{"path": path, "steps": todo} for path, todo in zip(paths, steps, strict=True)]
        finally:
            for path in paths:
                self.site.drop(path)

    def _checked(self, task: Task, built: Built, trace: str, best: float) -> Outcome:
        reference = self._reference_of(task)
        if missing := reference.failure:
            message = f"no reference to check against: {missing.message}"
            return self._outcome(trace, Failure(missing.error, message))
        known = best if math.isfinite(best) else None
        with self._on_site(built) as (library,):
            payload = {**self._payload(task, reference.path), **library, "best": known}
            found: dict[str, Any] | Failure
            try:
                run = partial(self._run, payload, self._deadline(task, best))
                (found,) = self._possible(task, lambda: [run()])
            except WorkerFailure as failure:
                found = _failed(failure)
        return self._outcome(trace, found, reference.oracle)

    def _run(self, payload: dict[str, Any], timeout: float) -> dict[str, Any]:
        found: dict[str, Any] = self._twice(f"{_RUNNER}:run", payload, timeout)
        if found["error"] == "wrong-output":  # it may have written anywhere in the process
            self.site.restart()
        return found

    def _twice(self, function: str, payload: dict[str, Any], timeout: float) -> Any:
        """The answer of the site's process or, if that fails, of a fresh process.

        An earlier run may have left a broken heap or little memory, or the machine may have been
        too busy to end in time.
        """
        try:
            return self.site.call(function, payload, timeout)
        except WorkerFailure:
            self.site.restart()
        try:
            return self.site.call(function, payload, timeout)
        except WorkerFailure:
            self.site.start()  # in the background, if it had to be killed
            raise

    def _outcome(self, trace: str, found: dict[str, Any] | Failure, oracle: str = "") -> Outcome:
        if isinstance(found, Failure):
            return Outcome(trace, (), found.error, found.message, device=self.site.name)
        proof = None
        if found.get("errors") is not None:
            proof = {"oracle": oracle, "seed": self._seed, **found["errors"]}
        words = tuple(found["seconds"]), found["error"], found["message"], proof, self.site.name
        return Outcome(trace, *words, found.get("clock", 0))

    def _reference_of(self, task: Task) -> _Reference:
        """The reference by the default schedule, or by the plain program if that fails."""
        key = task.workload.key
        if key not in self._references:
            reference = self._reference(task, "default", self._deadline(task, math.inf))
            if reference.failure:
                reference = self._reference(task, "plain", PLAIN_SECONDS)
            self._references[key] = reference
        return self._references[key]

    def _reference(self, task: Task, oracle: str, timeout: float) -> _Reference:
        expected = self.site.scratch("expected.npz")
        built = self._oracle(task, oracle)
        if isinstance(built, Failure):
            return _Reference(oracle, expected, built)
        with self._on_site(built) as (library,):
            try:
                payload = {**self._payload(task, expected), **library}
                # The plain program is not repeated: if it times out, it is slow by itself.
                call = self.site.call if oracle == "plain" else self._twice
                call(f"{_RUNNER}:reference", payload, timeout)
            except WorkerFailure as failure:
                return _Reference(oracle, expected, _failed(failure))
        return _Reference(oracle, expected)

    def _arbitrate(self, task: Task) -> bool:
        """Make the plain program's outputs the reference, once a task. Returns whether it did."""
        key = task.workload.key
        if key in self._arbitrated or self._references[key].oracle == "plain":
            return False
        self._arbitrated.add(key)
        plain = self._reference(task, "plain", PLAIN_SECONDS)
        if plain.failure:  # it takes too long, or fails: the default schedule stays the reference
            return False
        self.site.drop(self._references[key].path)
        self._references[key] = plain
        return True

    def _payload(self, task: Task, expected: str) -> dict[str, Any]:
        payload = {"signature": _signature(task), "seed": self._seed, "expected": expected}
        room = room_for_copies(task, self._target)
        return {**payload, "machine": self._machine, "room": room}

    def _deadline(self, task: Task, best: float) -> float:
        """Seconds after which a run counts as hung: many times its expected time."""
        expected = best if math.isfinite(best) else assumed_seconds(task, self._target)
        return min(max(LEAST_SECONDS, _PATIENCE * expected), MOST_SECONDS)


def assumed_seconds(task: Task, target: Target) -> float:
    """The assumed seconds of a candidate's run, where no time of its task is known."""
    return _ASSUMED_SLOWER * task.roofline(target)


@lru_cache(maxsize=32)
def _signature(task: Task) -> dict[str, Any]:
    return signature(task.mod).to_json()


def _failed(failure: WorkerFailure) -> Failure:
    return Failure("run" if failure.kind == "raised" else failure.kind, failure.message)
