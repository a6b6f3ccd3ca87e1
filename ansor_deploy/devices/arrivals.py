"""Serve requests that come at a rate, whether or not the library keeps up, and time each.

Timing one run after the other says nothing about waiting, since the next request comes when the
last one is answered. Here the arrivals are fixed in advance, and a slow run makes later requests
wait. The times are kept and summarised where the library runs, so this module is on boards as well.
"""

import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

MOST = 100_000  # the most arrivals of a command
RANKS = (0.5, 0.9, 0.99)  # the quantiles that are reported
Points = Sequence[float | None]  # seconds at RANKS; None where that request was missed
Times = Sequence[tuple[float, float]]  # seconds that each request waited and ran


@dataclass(frozen=True)
class Served:
    """The figures of served requests. seconds: how long they came. missed: not begun by the end.

    total: from arrival to answer. Missed requests count as slower than all others, except in
    `running`, which covers only begun requests.
    """

    seconds: float
    begun: int
    missed: int
    total: Points
    waiting: Points
    running: Points


def arrivals(rate: float, seconds: float) -> list[float]:
    """When requests come, in seconds from the beginning: at least one, and equal in every call.

    They are independent (a Poisson process), and so come in bursts. rate: requests a second.
    """
    draw = random.Random(0)  # noqa: S311 - no secret
    found = [draw.expovariate(rate)]
    while (at := found[-1] + draw.expovariate(rate)) < seconds:
        found.append(at)
    return found


def span(coming: Sequence[float], seconds: float) -> float:
    """Seconds until the end: the requested ones, but at least until the first request."""
    return max(seconds, coming[-1])


def serve(
    coming: Sequence[float],
    begin: float,
    end: float,
    tickets: Iterable[int],
    run: Callable[[int], float],
) -> list[tuple[float, float]]:
    """Take one request after the other until the end; return the times of those taken here.

    begin, end: times of `time.monotonic`. tickets: numbers of requests, from 0 on, each of which
    only one server gets. run: runs the request of a number, and returns its seconds. The first
    request is always run.
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
    """The figures of `arrived` requests. times: those of the begun ones."""
    waiting, running = zip(*times, strict=True)
    missed = arrived - len(times)
    total = _points([sum(pair) for pair in times], missed)
    parts = total, _points(waiting, missed), _points(running, 0)
    return Served(seconds, len(times), missed, *parts)


def _points(seconds: Sequence[float], missed: int) -> list[float | None]:
    """The values at RANKS, by nearest rank."""
    known = sorted(seconds)
    ranks = [math.ceil(part * (len(known) + missed)) - 1 for part in RANKS]
    return [known[at] if at < len(known) else None for at in ranks]
