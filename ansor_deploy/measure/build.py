"""Candidates to libraries, in a pool of warm workers, each build with its own deadline."""

from __future__ import annotations

import itertools
import os
import shutil
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import AnsorError
from ..target import Target
from .worker import Worker, WorkerFailure, wait_any

BUILD_SECONDS = 30.0
_LINKERS = ("ld", "g++", "gcc", "clang++", "clang", "c++", "cc")  # as `codegen` and TVM find them


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
class BuildFailure:
    """Why there is no library. error: "build", "timeout" or "crash"."""

    error: str
    message: str


class Builder:
    """A pool of build workers, one a core unless said otherwise, writing into `folder`.

    The workers start at once, in the background. timeout: seconds for one build.
    """

    def __init__(
        self, target: Target, folder: Path, workers: int = 0, timeout: float = BUILD_SECONDS
    ) -> None:
        self._target = target.to_json()
        self._folder = folder
        self._timeout = timeout
        self._names = itertools.count()
        count = workers or len(os.sched_getaffinity(0))
        self._workers = [Worker({"TVM_NUM_THREADS": "1"}) for _ in range(count)]

    def start(self) -> None:
        """Start every worker without waiting for any. AnsorError where nothing can link."""
        if not any(shutil.which(name) for name in _LINKERS):
            raise AnsorError(
                "no linker to build candidates with: neither ld nor a C++ compiler is on the PATH",
                "install one (Debian: apt-get install g++), then repeat the command",
            )
        for worker in self._workers:
            worker.start()

    def build(self, jobs: Sequence[BuildJob]) -> list[Built | BuildFailure]:
        """A result a job, in the order of the jobs. AnsorError where no worker can start."""
        results: list[Any] = [None] * len(jobs)
        queue, idle = deque(range(len(jobs))), list(self._workers)
        busy: dict[Worker, int] = {}
        try:
            while queue or busy:
                while queue and idle:
                    worker = idle.pop()
                    busy[worker] = queue.popleft()
                    self._submit(worker, jobs[busy[worker]])
                for worker in wait_any(list(busy)):
                    results[busy.pop(worker)] = _result(worker)
                    idle.append(worker)
        finally:  # interrupted: answers that may still come are nobody's
            for worker in busy:
                worker.kill()
        return results

    def close(self) -> None:
        """Kill every worker, whatever it does."""
        for worker in self._workers:
            worker.close()

    def _submit(self, worker: Worker, job: BuildJob) -> None:
        path = self._folder / f"candidate-{next(self._names)}.so"
        payload = {
            "text": job.text,
            "how": job.how,
            "trace": job.trace,
            "target": self._target,
            "path": str(path),
        }
        worker.submit("ansor_deploy.measure.codegen:build", payload, self._timeout)


def _result(worker: Worker) -> Built | BuildFailure:
    try:
        made = worker.result()
    except WorkerFailure as failure:
        kind = "build" if failure.kind == "raised" else failure.kind
        return BuildFailure(kind, f"building: {failure.message}")
    return Built(Path(made["path"]), tuple(made["steps"]))
