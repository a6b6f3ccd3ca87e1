"""`ansor-deploy bench --rate`: how long requests wait that come at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ..system.json_types import Cores, Count, Ms
from ..system.words import count
from ..views.text import latency, rate_text

if TYPE_CHECKING:
    from ..devices.arrivals import Points, Served


class Percentiles(Struct, frozen=True):
    """Percentiles of requests. null: at that percentile, a request had not begun by the end."""

    p50_ms: Ms | None
    p90_ms: Ms | None
    p99_ms: Ms | None


class Rated(Struct, frozen=True):
    """The answer of `bench --rate --json`. asked, per_second: requests a second, wanted and begun.

    total: from a request's arrival to its answer, as the sum of waiting and running. Requests that
    were missed count as the longest waits; `running` is of those that began.
    """

    asked: float
    per_second: float
    arrived: Count
    missed: Count
    threads: Cores
    streams: Cores
    total: Percentiles
    waiting: Percentiles
    running: Percentiles

    @classmethod
    def of(cls, served: Served, asked: float, threads: int, streams: int) -> Rated:
        """The figures of a served load. asked: requests a second."""
        return cls(
            asked=asked,
            per_second=served.begun / served.seconds,
            arrived=served.begun + served.missed,
            missed=served.missed,
            threads=threads,
            streams=streams,
            total=_percentiles(served.total),
            waiting=_percentiles(served.waiting),
            running=_percentiles(served.running),
        )


def _percentiles(points: Points) -> Percentiles:
    return Percentiles(*(None if seconds is None else seconds * 1e3 for seconds in points))


def rate_lines(rated: Rated) -> list[str]:
    """The answer as lines of text."""
    names = ("arrival to answer", rated.total), ("waiting", rated.waiting), ("run", rated.running)
    lines = [f"{name}: {_text(part)}" for name, part in names]
    of = f"{count(rated.streams, 'stream')} of {count(rated.threads, 'thread')}"
    did = f"{rated.asked:g} a second asked, {rate_text(rated.per_second)} begun by {of}"
    missed = f"{rated.missed} of {rated.arrived} had not begun by the end" if rated.missed else ""
    return [f"{did}; {missed or f'none of {rated.arrived} missed'}", *lines]


def _text(part: Percentiles) -> str:
    each = ((name, getattr(part, f"{name}_ms")) for name in ("p50", "p90", "p99"))
    return ", ".join(f"{name} {'missed' if ms is None else latency(ms / 1e3)}" for name, ms in each)
