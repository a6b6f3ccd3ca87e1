"""Streams: copies of a library that run side by side, each in a process of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import Any

from ...devices import arrivals
from ...errors import AnsorError
from ...runtime.model import Model
from ...system.worker import Worker, WorkerFailure
from ..verify.draws import inputs_that_run
from .fresh import Local, library_side

START_SECONDS = 600.0  # the limit to load a library and run it for the first time
BEGIN_SECONDS = 0.1  # from when the last process is ready until all begin
MOST_RUNS = 100_000  # of a process, since it has to send all its times
_SPLITS = 32  # how many loaded libraries, with other threads, a process keeps


class Streams:
    """Processes that each load a library of this machine.

    shapes: the library's shapes in which a run is made, one after the other. Methods raise
    AnsorError where it does not run in so many processes.
    """

    def __init__(self, library: Local, shapes: Sequence[int], workers: Sequence[Worker]) -> None:
        side = library_side(library)
        self._path, self._workers = library.path, workers
        sent = {"manifest": json.dumps(side["manifest"]), "shapes": list(shapes)}
        self._payload = {"library": side["library"], **sent}

    def prepare(self, streams: int, threads: int) -> None:
        """Load the library in the first `streams` processes, and run it once. threads: of a run."""
        self._all("prepare", streams, threads=threads)

    def times(self, streams: int, threads: int, until: float) -> list[list[float]]:
        """Seconds of each run of these processes side by side; each makes at least one.

        until: a time of `time.monotonic`. The processes must be prepared.
        """
        begin = time.monotonic() + BEGIN_SECONDS
        return self._all("run", streams, threads=threads, begin=begin, end=until)

    def serve(
        self, streams: int, threads: int, coming: Sequence[float], seconds: float, tickets: Path
    ) -> list[tuple[float, float]]:
        """Seconds that each request waited and ran, for those that began within `seconds`.

        coming: when requests come, in seconds from the beginning. tickets: an empty file.
        """
        begin = time.monotonic() + BEGIN_SECONDS
        words = {"begin": begin, "end": begin + seconds, "tickets": str(tickets)}
        each = self._all("serve", streams, threads=threads, coming=list(coming), **words)
        return [(waited, taken) for served in each for waited, taken in served]

    def _all(self, function: str, streams: int, **words: Any) -> list[Any]:
        what, payload = f"{__name__}:{function}", self._payload | words
        workers = self._workers[:streams]
        for one in workers:  # here, since a child ends with the thread that started it
            one.start()
        try:
            with ThreadPoolExecutor(streams) as pool:
                calls = [pool.submit(one.call, what, payload, START_SECONDS) for one in workers]
                return [call.result() for call in calls]
        except WorkerFailure as failure:
            said = f"{self._path} does not run in {streams} processes at once: {failure.message}"
            raise AnsorError(said, "ask for fewer --streams") from failure


@contextmanager
def open_streams(library: Local, shapes: Sequence[int], most: int) -> Iterator[Streams]:
    """Processes for `most` copies of a library, each of which is started when it is needed."""
    with ExitStack() as stack:
        workers = [stack.enter_context(closing(Worker(__name__))) for _ in range(most)]
        yield Streams(library, shapes, workers)


def prepare(payload: dict[str, Any]) -> None:
    """In a process of its own: load the library, and run it once."""
    _run(payload)


def run(payload: dict[str, Any]) -> list[float]:
    """In a process of its own: the seconds of each run from "begin" to "end" of the clock."""
    time.sleep(max(0.0, payload["begin"] - time.monotonic()))
    times: list[float] = []
    while not times or (time.monotonic() < payload["end"] and len(times) < MOST_RUNS):
        times.append(_run(payload))
    return times


def serve(payload: dict[str, Any]) -> list[tuple[float, float]]:
    """In a process of its own: take the next free request again and again.

    Returns the seconds that each of its requests waited and ran. Requests take turns in the shapes.
    """
    shapes, span = payload["shapes"], (payload["begin"], payload["end"])

    def one(at: int) -> float:
        return _run({**payload, "shapes": [shapes[at % len(shapes)]]})

    with Path(payload["tickets"]).open("ab", buffering=0) as file:
        return arrivals.serve(payload["coming"], *span, _tickets(file), one)


def _tickets(file: FileIO) -> Iterator[int]:
    """Numbers from 0 on, each of which only one process gets.

    Each appends a byte to the shared file: the kernel gives every byte its own position.
    """
    while file.write(b"x"):
        yield file.tell() - 1


def _run(payload: dict[str, Any]) -> float:
    """Seconds of a run in each of the shapes."""
    sent = payload["library"], payload["manifest"], payload["threads"]
    return sum(_opened(*sent).times(_inputs(*sent, shape), 1)[0] for shape in payload["shapes"])


@lru_cache(_SPLITS)
def _opened(library: str, manifest: str, threads: int) -> Model:
    return Model(Path(library), json.loads(manifest), threads)


@lru_cache(_SPLITS)
def _inputs(library: str, manifest: str, threads: int, shape: int) -> dict[str, Any]:
    model = _opened(library, manifest, threads)
    return inputs_that_run(model, model.interfaces[shape], seed=0)
