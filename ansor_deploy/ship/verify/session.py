"""Run models with ONNX Runtime in a child process, so that its crashes do not end a build.

The child starts in the background, while a model is read. If it crashes or hangs, as ONNX Runtime's
optimisations do on some models, the model is loaded again without optimisations. Tensors are passed
through memory that both processes map.
"""

from __future__ import annotations

import itertools
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from ...errors import AnsorError, ModelError
from ...runtime.tensors import in_memory, memory_bytes
from ...system import machine_fault
from ...system.worker import Worker, WorkerFailure

if TYPE_CHECKING:
    from onnx import ModelProto

SECONDS = 600.0  # time limit for loading a model, and for a run
_CHILD = "ansor_deploy.ship.verify.session_child"
_HINT = (
    "correct the model, or build it with --no-verify: it cannot be verified without ONNX Runtime"
)
_numbers = itertools.count()


class Session:
    """A model in ONNX Runtime; ModelError if that refuses the model, or crashes with it.

    make: returns the model each time that it is loaded. threads: 0 for all cores. as_written:
    whether the model runs node by node, without fusion. engine: ONNX Runtime's name and version.
    """

    def __init__(self, make: Callable[[], ModelProto], threads: int, *, as_written: bool) -> None:
        self._make, self._threads, self._as_written = make, threads, as_written
        _wanted.add(self)
        self.engine: str = self._insist(self._load)

    def run(self, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs for inputs, both by name; ModelError as for the class."""
        return self._insist(lambda: self._run(feed))

    def _insist(self, call: Callable[[], Any]) -> Any:
        """The result of a call, repeated once if the child ends; after a crash, unoptimised."""
        try:
            return call()
        except _EndedError as ended:
            if self._as_written and not ended.was_killed:
                raise ended.explained() from ended
            self._as_written |= not ended.was_killed
        try:
            return call()
        except _EndedError as ended:
            raise ended.explained() from ended

    def _load(self) -> str:
        self._number = next(_numbers)
        wanted = [one._number for one in _wanted]  # noqa: SLF001 - of the same class
        with _model_file(self._model()) as path:
            words = {"number": self._number, "model": path, "wanted": wanted}
            ways = {"threads": self._threads, "as_written": self._as_written}
            return str(_call("load", {**words, **ways})["engine"])

    def _model(self) -> ModelProto:
        try:
            return self._make()
        except Exception as error:
            machine_fault.raise_if_fault(error)
            raise _refused("load", str(error)) from error

    def _run(self, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        kinds = [(one.shape, one.dtype.name) for one in feed.values()]
        with _file() as (file, path):
            os.ftruncate(file, memory_bytes(kinds))
            for place, one in zip(_mapped(file, kinds), feed.values(), strict=True):
                place[...] = one
            words = {"memory": path, "inputs": list(feed), "kinds": kinds}
            grow = partial(os.ftruncate, file)
            while not (answer := _call("run", {"number": self._number, **words}, grow)):
                self._load()
            made = _mapped(file, [*kinds, *answer["kinds"]])[len(kinds) :]
        return dict(zip(answer["outputs"], made, strict=True))


_wanted = WeakSet[Session]()


class _EndedError(Exception):
    """The child ended during a call, or was ended because the call took too long."""

    def __init__(self, function: str, failure: WorkerFailure) -> None:
        how = {"crash": "crashes", "timeout": "does not end", "raised": "fails"}[failure.kind]
        super().__init__(f"ONNX Runtime {how} when it {function}s the model: {failure.message}")
        self.was_killed = failure.message.startswith(("SIGKILL", "SIGTERM", "SIGHUP"))

    def explained(self) -> AnsorError:
        """The error to raise if the repeated call fails, too."""
        if self.was_killed:
            return machine_fault.killed(str(self))
        return ModelError(f"{self}; also without its optimisations", _HINT)


def start() -> None:
    """Start the child in the background, for a model that will be loaded soon."""
    _worker().start()


@cache
def _worker() -> Worker:
    return Worker(_CHILD)


def _call(
    function: str, payload: dict[str, Any], on_ask: Callable[[Any], Any] = lambda asked: None
) -> dict[str, Any]:
    """The child's answer; ModelError where ONNX Runtime refuses the model or the inputs."""
    try:
        answer: dict[str, Any] = _worker().call(f"{_CHILD}:{function}", payload, SECONDS, on_ask)
    except WorkerFailure as failure:
        raise _EndedError(function, failure) from failure
    if "refused" in answer:
        raise _refused(function, answer["refused"])
    return answer


def _refused(function: str, words: str) -> ModelError:
    how = {"load": "refuses", "run": "cannot run"}[function]
    return ModelError(f"ONNX Runtime {how} the model: {words.splitlines()[0]}", _HINT)


@contextmanager
def _model_file(proto: ModelProto) -> Iterator[str]:
    """The path of a model's file, which is in memory unless the model is large."""
    from ...model.onnx.written import is_large, write_model

    if is_large(proto):
        with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
            yield str(write_model(proto, Path(folder)))
        return
    with _file() as (file, path):
        with open(file, "wb", closefd=False) as stream:
            stream.write(proto.SerializeToString())
        yield path


@contextmanager
def _file() -> Iterator[tuple[int, str]]:
    """A file in memory: its descriptor, and a path by which the child can open it."""
    file = os.memfd_create("oracle")
    try:
        yield file, f"/proc/{os.getpid()}/fd/{file}"
    finally:
        os.close(file)


def _mapped(file: int, kinds: list[Any]) -> list[np.ndarray]:
    return in_memory(np.frombuffer(mmap.mmap(file, memory_bytes(kinds)), np.uint8), kinds)
