"""Requests that come at a rate, whether or not a library keeps up: how long each waits and runs.

Timing one run after the other says nothing of waiting: the next request comes when the last one is
answered. Here the arrivals are fixed in advance, and a slow run makes those behind it wait.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...runtime.model import load
from .streams import open_streams

MOST = 100_000  # arrivals of a command


@dataclass(frozen=True)
class Served:
    """What became of requests. seconds: in which they came.

    waiting, running: seconds of each that was begun, in no order. missed: had not begun by the end.
    """

    seconds: float
    waiting: Sequence[float]
    running: Sequence[float]
    missed: int


def arrivals(rate: float, seconds: float) -> list[float]:
    """When requests come, in seconds from the beginning: one at least, and the same in each call.

    They know nothing of each other (a Poisson process), and so come in bursts. rate: a second.
    """
    draw = random.Random(0)  # noqa: S311 - no secret
    found = [draw.expovariate(rate)]
    while (at := found[-1] + draw.expovariate(rate)) < seconds:
        found.append(at)
    return found


def bench_rate(artifact: Path, rate: float, seconds: float, threads: int, streams: int) -> Served:
    """What becomes of so many requests a second, one queue for all streams of this machine.

    Of several shapes the requests take turns. seconds: in which they come, from when all is loaded.
    threads: of a run. UsageError where that is more requests than can be told.
    """
    if rate * seconds > MOST:
        most = f"at most {MOST:,}, and {rate:g} a second are more in {seconds:g} s"
        raise UsageError(f"a benchmark has {most}", "give it less --time, or a lower --rate")
    library = load(artifact, threads)
    with (
        tempfile.NamedTemporaryFile(prefix="ansor-deploy-") as tickets,
        open_streams(library, range(len(library.interfaces)), streams) as side,
    ):
        side.prepare(streams, threads)
        coming = arrivals(rate, seconds)
        span = max(seconds, coming[-1])
        served = side.serve(streams, threads, coming, span, Path(tickets.name))
    waiting, running = zip(*served, strict=True)
    return Served(span, waiting, running, len(coming) - len(served))
