"""Copies of a library side by side, each in a process of its own: what they do in a second."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import AnsorError
from ...runtime.model import Model, load
from ...system.worker import Worker, WorkerFailure
from ..verify.draws import inputs_that_run

START_SECONDS = 600.0  # to load a library, and to run it for the first time
BEGIN_SECONDS = 0.1  # from the last process that is ready until all begin
MOST_RUNS = 100_000  # of a process, whose answer has to be sent


def times_side_by_side(
    artifact: Path, shape: int, streams: int, threads: int, until: float
) -> list[float]:
    """Seconds of each run of so many processes at once, each of which makes one at least.

    shape: which of the library's several. threads: of a run. until: of `time.monotonic`.
    AnsorError where it does not run so.
    """
    payload = {"artifact": str(artifact.absolute()), "shape": shape, "threads": threads}
    with ExitStack() as stack, ThreadPoolExecutor(streams) as pool:
        workers = [stack.enter_context(closing(Worker(__name__))) for _ in range(streams)]

        def all_of(function: str, **words: Any) -> list[Any]:
            call = lambda one: one.call(f"{__name__}:{function}", payload | words, START_SECONDS)  # noqa: E731
            return list(pool.map(call, workers))

        try:
            all_of("prepare")
            begin = time.monotonic() + BEGIN_SECONDS
            found = all_of("run", begin=begin, end=until)
        except WorkerFailure as failure:
            what = f"{artifact} does not run in {streams} processes at once: {failure.message}"
            raise AnsorError(what, "ask for fewer --streams") from failure
    return [taken for times in found for taken in times]


def prepare(payload: dict[str, Any]) -> None:
    """In a process of its own: load the library, and run it once."""
    _opened(payload["artifact"], payload["shape"], payload["threads"])


def run(payload: dict[str, Any]) -> list[float]:
    """In a process of its own: the seconds of each run from "begin" to "end" of the clock."""
    model, inputs = _opened(payload["artifact"], payload["shape"], payload["threads"])
    time.sleep(max(0.0, payload["begin"] - time.monotonic()))
    times: list[float] = []
    while not times or (time.monotonic() < payload["end"] and len(times) < MOST_RUNS):
        times += model.times(inputs, 1)
    return times


@lru_cache(maxsize=1)
def _opened(artifact: str, shape: int, threads: int) -> tuple[Model, dict[str, Any]]:
    model = load(artifact, threads)
    return model, inputs_that_run(model, model.interfaces[shape], seed=0)
