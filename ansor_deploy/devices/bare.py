"""Run libraries in a process of its own with TVM's runtime and no compiler, as users have it.

Anything that is missing there is an error here, and a crash of a library harms nothing else.
Tensors are passed in memory that both processes map.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UsageError, VerificationError
from ..runtime.fit import fitting
from ..runtime.interface import declared, interfaces, of_calls, of_true_size, ranges
from ..runtime.manifest_json import threads_of
from ..runtime.out_of_range import OUT_OF_RANGE, RANGE_HINT
from ..runtime.tensors import in_memory, memory_bytes
from ..system.worker import Worker, WorkerFailure

if TYPE_CHECKING:
    from ..runtime.interface import Interface

RUN_SECONDS = 600.0  # the limit for the runs of one call
_CHILD = "ansor_deploy.devices.bare_child"
_numbers = itertools.count()
_spare: list[Worker] = []


class BareModel:
    """A library that is called and timed like a `runtime.Model`, in a child process.

    VerificationError where it does not run there; MachineError where this machine is at fault.
    """

    def __init__(
        self, worker: Worker, path: Path, manifest: dict[str, Any], threads: int, code: int | None
    ) -> None:
        self.path, self.manifest = path, manifest
        self.interfaces = interfaces(manifest)
        self.batches = ranges(manifest, declared(manifest))
        self.threads = threads or threads_of(manifest)
        self._worker = worker
        sent = json.dumps(of_calls(manifest))
        # It has a number, since another build's library may have had the same path.
        self._library = [next(_numbers), str(path.absolute()), sent, threads, code]

    def __call__(self, /, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Run once, in the inputs' shapes.

        UsageError where it does not take these shapes, or an index in the inputs is out of range.
        """
        _, outputs = self._call("run", inputs)
        return of_true_size(self.interfaces[0].outputs, outputs)

    def times(self, inputs: dict[str, np.ndarray], runs: int) -> list[float]:
        """Seconds of each of `runs` runs, one after the other, by the child's clock."""
        seconds, _ = self._call("times", inputs, runs=runs)
        return list(seconds)

    def _call(
        self, function: str, inputs: dict[str, np.ndarray], **words: Any
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """The answer of one of the child's functions, and the outputs that it has written."""
        one = fitting(self.path, self.interfaces, inputs, self.batches)
        with _shared(one, inputs) as (place, outputs):
            tensors = {"interface": one.to_json(), "memory": place}
            payload = {"library": self._library, **tensors, **words}
            try:
                answer = self._worker.call(f"{_CHILD}:{function}", payload, RUN_SECONDS)
            except WorkerFailure as failure:
                raise self._refused(failure) from failure
        return answer, outputs

    def _refused(self, failure: WorkerFailure) -> UsageError | VerificationError:
        if failure.kind == "raised" and (index := OUT_OF_RANGE.search(failure.message)):
            return UsageError(index[0], RANGE_HINT, self.path)
        how = {"raised": "does not run", "crash": "crashes", "timeout": "does not end"}
        return VerificationError(
            f"the library {how[failure.kind]}: {failure.message}",
            "build with --trials 0 and an empty --registry to see whether a record is wrong, "
            "and report it",
        )


class Bare:
    """A child process for libraries, which is started when it is first needed."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def start(self) -> None:
        """Start it in the background, since a library will come."""
        self._worker.start()

    def load(
        self, path: Path, manifest: dict[str, Any], threads: int = 0, code: int | None = None
    ) -> BareModel:
        """A library with its manifest, ready to be called.

        threads: those of a call; 0 for as many as its target has cores. code: as in `Model`.
        """
        return BareModel(self._worker, path, manifest, threads, code)


@contextmanager
def open_bare() -> Iterator[Bare]:
    """A child process for libraries; it is kept for the next build of this process."""
    worker = _spare.pop() if _spare else Worker(_CHILD)
    try:
        yield Bare(worker)
    finally:
        _spare.append(worker)


@contextmanager
def _shared(
    one: Interface, inputs: dict[str, np.ndarray]
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Shared memory with the tensors of an interface: its path as a file, and the outputs in it."""
    kinds = [(info.shape, info.dtype) for info in (*one.inputs, *one.outputs)]
    file = os.memfd_create("tensors")
    try:
        os.ftruncate(file, size := memory_bytes(kinds))
        arrays = in_memory(np.frombuffer(mmap.mmap(file, size), np.uint8), kinds)
        for info, place in zip(one.inputs, arrays, strict=False):
            place[...] = inputs[info.name]
        outputs = arrays[len(one.inputs) :]
        names = [info.name for info in one.outputs]
        yield f"/proc/{os.getpid()}/fd/{file}", dict(zip(names, outputs, strict=True))
    finally:
        os.close(file)
