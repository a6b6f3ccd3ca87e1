"""Builds candidates into libraries by an executor: this machine's warm workers, or a farm."""

import itertools
import os
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..codegen import linker
from ..errors import AnsorError, LinkError, MachineError
from ..system import fence
from ..system.machine_fault import RESUMES, about, raise_if_fault
from ..system.worker import Worker, WorkerFailure
from ..target import Target

BUILDS = "ansor_deploy.codegen.kernels.candidate"  # the build workers' module, with the compiler
BUILD_SECONDS = 30.0  # processor time of a build, so that a busy machine fails no candidate
_BUSY = 10  # a build may last this many times its processor time, on a busy machine
_this_thread = threading.local()


@dataclass(frozen=True)
class BuildJob:
    """One program to build. text: the task's. how: "trace" with a trace, "default" or "plain"."""

    text: str
    how: str
    trace: str = ""


@dataclass(frozen=True)
class Built:
    """A linked library, and the calls that run it (see `codegen.build`)."""

    path: Path
    steps: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Failure:
    """Why there is no library, or no result of a library. error: one of `outcome.KINDS`."""

    error: str
    message: str


class WarmThreads(ThreadPoolExecutor):
    """Threads that each own a build worker: a child process that imports TVM once.

    The thread that calls `start` starts the workers in the background. They may write only to
    `folder`.
    """

    def __init__(self, count: int, folder: Path) -> None:
        self.workers = [_worker(folder) for _ in range(count)]
        self._unowned = iter(self.workers)
        super().__init__(count, "ansor-deploy-build", self._take_worker)

    def start(self) -> None:
        """Start every worker without waiting for any."""
        for worker in self.workers:
            worker.start()

    def interrupt(self) -> None:
        """End all running builds now; the next job gets fresh workers."""
        for worker in self.workers:
            worker.interrupt()

    def close(self) -> None:
        """Kill every worker, even during a build."""
        self.shutdown(wait=False, cancel_futures=True)
        self.interrupt()
        self.shutdown(wait=True)
        for worker in self.workers:
            worker.close()

    def _take_worker(self) -> None:
        _this_thread.worker = next(self._unowned)


def build_candidate(payload: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Build in the warm worker of the executor's calling thread, here or on a farm.

    payload: as for `codegen.build`; without a "path", the answer has the library's bytes as
    "library". The answer of a failed build is {"error", "message"}.
    """
    if "path" in payload:
        return _called(payload, timeout)
    path = _folder_of_farm() / "candidate.so"
    made = _called({**payload, "path": str(path)}, timeout)
    return made if "error" in made else {**made, "library": path.read_bytes()}


class Building:
    """A build that was begun. future: gives `build_candidate`'s answer. path: of the library."""

    def __init__(self, future: Future[dict[str, Any]], path: Path) -> None:
        self.future, self._path = future, path
        self._lock = threading.Lock()
        self._result: Built | Failure | None = None

    @property
    def result(self) -> Built | Failure:
        """The library or the failure, after the build's end; MachineError if there is neither."""
        with self._lock:
            self._result = self._result or self._ended()
            return self._result

    def _ended(self) -> Built | Failure:
        try:
            made = self.future.result()
        except AnsorError:
            raise
        except Exception as error:  # noqa: BLE001 - a failing executor may raise anything
            raise_if_fault(error)
            return Failure("infrastructure", f"{type(error).__name__}: {error}"[:600])
        if "error" in made:
            return Failure(made["error"], f"building: {made['message']}")
        if "library" in made:
            with about(self._path):
                self._path.write_bytes(made["library"])
        return Built(self._path, tuple(made["steps"]))

    def remove(self) -> None:
        """Remove the library, if there is one."""
        self._path.unlink(missing_ok=True)


class Builder:
    """Builds candidates of one target into `folder`.

    executor: an executor of `concurrent.futures`, which its owner shuts down; by default a worker
    on each of this machine's cores. timeout: seconds of processor time for one build.
    """

    def __init__(
        self,
        target: Target,
        folder: Path,
        executor: Executor | None = None,
        timeout: float = BUILD_SECONDS,
    ) -> None:
        self._target, self._folder, self._timeout = target, folder, timeout
        self._names = itertools.count()
        self._here: WarmThreads | None = None
        if executor is None:
            executor = self._here = WarmThreads(len(os.sched_getaffinity(0)), folder)
        self._executor = executor

    def start(self) -> None:
        """Start the workers of this machine. AnsorError where there is no linker."""
        if self._here is not None:
            linker.check(self._target)
            self._here.start()

    def submit(self, job: BuildJob) -> Building:
        """Begin a build."""
        path = self._folder / f"candidate-{next(self._names)}.so"
        payload = {**asdict(job), "target": self._target.to_json()}
        if self._here is not None:
            payload["path"] = str(path)
        return Building(self._executor.submit(build_candidate, payload, self._timeout), path)

    def build(self, jobs: Sequence[BuildJob]) -> list[Built | Failure]:
        """The result of each job, in order."""
        begun = [self.submit(job) for job in jobs]
        return [building.result for building in begun]

    def interrupt(self) -> None:
        """End all running builds on this machine now."""
        if self._here is not None:
            self._here.interrupt()

    def close(self) -> None:
        """Kill this machine's workers, even during a build."""
        if self._here is not None:
            self._here.close()


def _worker(folder: Path) -> Worker:
    """A build worker for one core. It and its linker may write only to a folder."""
    env = {"TVM_NUM_THREADS": "1", "TMPDIR": str(folder), fence.VARIABLE: str(folder)}
    return Worker(BUILDS, env)


def _folder_of_farm() -> Path:
    """The folder of a farm's thread; the thread keeps it, and a worker, until it ends."""
    if not hasattr(_this_thread, "folder"):
        folder = tempfile.TemporaryDirectory(prefix="ansor-deploy-build-")
        _this_thread.worker = _worker(Path(folder.name))  # first, as it fails on a full disk
        _this_thread.folder = folder
    return Path(_this_thread.folder.name)


def _called(payload: dict[str, Any], timeout: float) -> dict[str, Any]:
    worker: Worker = _this_thread.worker
    try:
        words = {**payload, "seconds": timeout}
        made: dict[str, Any] = worker.call(f"{BUILDS}:build", words, _BUSY * timeout)
    except WorkerFailure as failure:
        return {"error": _kind(failure), "message": failure.message}
    return made


def _kind(failure: WorkerFailure) -> str:
    """The kind of outcome; MachineError where the built program is not the cause."""
    if failure.kind == "timeout":
        what = f"this machine is too busy to build: {failure.message}"
        raise MachineError(what, f"end other programs; {RESUMES}") from failure
    if failure.message.startswith(f"{AnsorError.__name__}:"):  # for instance, the linker is gone
        raise MachineError(failure.message, "run `ansor-deploy doctor`") from failure
    if failure.kind == "raised":
        return "link" if failure.message.startswith(f"{LinkError.__name__}:") else "build"
    return "timeout" if failure.message.startswith("SIGXCPU") else failure.kind
