"""`ansor-deploy bench --rate`: what requests that come by themselves have to wait."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ..system.json_types import Cores, Count, Ms
from ..system.words import count
from ..views.text import latency

if TYPE_CHECKING:
    from ..ship.race.arrivals import Served


class Percentiles(Struct, frozen=True):
    """Of requests. null: of one that had not begun by the end."""

    p50_ms: Ms | None
    p90_ms: Ms | None
    p99_ms: Ms | None


class Rated(Struct, frozen=True):
    """`bench --rate --json`. asked: requests a second. per_second: that were begun.

    total: from a request's arrival to its answer: what it was waiting, and running. Those that were
    missed wait longer than all others; running is of those that were begun.
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
        """The figures of what became of the requests."""
        both = [sum(pair) for pair in zip(served.waiting, served.running, strict=True)]
        return cls(
            asked=asked,
            per_second=len(both) / served.seconds,
            arrived=len(both) + served.missed,
            missed=served.missed,
            threads=threads,
            streams=streams,
            total=_percentiles(both, served.missed),
            waiting=_percentiles(served.waiting, served.missed),
            running=_percentiles(served.running, 0),
        )


def _percentiles(seconds: Sequence[float], missed: int) -> Percentiles:
    """Nearest ranks; whatever was missed takes longer than all else."""
    known = sorted(seconds)
    ranks = [math.ceil(part * (len(known) + missed)) - 1 for part in (0.5, 0.9, 0.99)]
    return Percentiles(*(known[at] * 1e3 if at < len(known) else None for at in ranks))


def rate_lines(rated: Rated) -> list[str]:
    """The answer as text."""
    names = ("arrival to answer", rated.total), ("waiting", rated.waiting), ("run", rated.running)
    lines = [f"{name}: {_text(part)}" for name, part in names]
    of = f"{count(rated.streams, 'stream')} of {count(rated.threads, 'thread')}"
    did = f"{rated.asked:g} a second asked, {rated.per_second:.4g} begun by {of}"
    missed = f"{rated.missed} of {rated.arrived} had not begun by the end" if rated.missed else ""
    return [f"{did}; {missed or f'none of {rated.arrived} missed'}", *lines]


def _text(part: Percentiles) -> str:
    each = ((name, getattr(part, f"{name}_ms")) for name in ("p50", "p90", "p99"))
    return ", ".join(f"{name} {'missed' if ms is None else latency(ms / 1e3)}" for name, ms in each)
