"""Requests that come at a rate, whether or not a library keeps up: how long each waits and runs.

Timing one run after the other says nothing of waiting: the next request comes when the last one is
answered. Here the arrivals are fixed in advance, and a slow run makes those behind it wait. Where
the library runs, the times are kept and summed up; this module is on boards, too.
"""

import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

MOST = 100_000  # arrivals of a command
RANKS = (0.5, 0.9, 0.99)
Points = Sequence[float | None]  # seconds at RANKS; None of a request that was missed
Times = Sequence[tuple[float, float]]  # that each request has waited, and run


@dataclass(frozen=True)
class Served:
    """What became of requests. seconds: in which they came. missed: had not begun by the end.

    total: from arrival to answer. Whatever was missed takes longer than all else, but in `running`,
    which is of those that were begun.
    """

    seconds: float
    begun: int
    missed: int
    total: Points
    waiting: Points
    running: Points


def arrivals(rate: float, seconds: float) -> list[float]:
    """When requests come, in seconds from the beginning: one at least, and the same in each call.

    They know nothing of each other (a Poisson process), and so come in bursts. rate: a second.
    """
    draw = random.Random(0)  # noqa: S311 - no secret
    found = [draw.expovariate(rate)]
    while (at := found[-1] + draw.expovariate(rate)) < seconds:
        found.append(at)
    return found


def span(coming: Sequence[float], seconds: float) -> float:
    """Seconds until the end: all that were asked for, and the first request at least."""
    return max(seconds, coming[-1])


def serve(
    coming: Sequence[float],
    begin: float,
    end: float,
    tickets: Iterable[int],
    run: Callable[[int], float],
) -> list[tuple[float, float]]:
    """Take one request after the other until the end: the times of each that was taken here.

    begin, end: of `time.monotonic`. tickets: numbers of requests, from 0 on, which others who serve
    the same do not get. run: seconds of the run of such a number. The first is always run.
    """
    served = []
    for at in tickets:
        if at >= len(coming):
            break
        due = begin + coming[at]
        time.sleep(max(0.0, due - time.monotonic()))
        if (began := time.monotonic()) >= end and at > 0:
            break
        served.append((began - due, run(at)))
    return served


def summed_up(times: Times, arrived: int, seconds: float) -> Served:
    """The figures of so many requests, of those that were begun."""
    waiting, running = zip(*times, strict=True)
    missed = arrived - len(times)
    total = _points([sum(pair) for pair in times], missed)
    parts = total, _points(waiting, missed), _points(running, 0)
    return Served(seconds, len(times), missed, *parts)


def _points(seconds: Sequence[float], missed: int) -> list[float | None]:
    """Nearest ranks."""
    known = sorted(seconds)
    ranks = [math.ceil(part * (len(known) + missed)) - 1 for part in RANKS]
    return [known[at] if at < len(known) else None for at in ranks]
