"""How fast is a library beside another engine, or library? They run in turns, none in the way."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .compare import interval_of_median

Feeds = Sequence[dict[str, Any]]

BLOCK_SECONDS = 20e-3  # of runs of one engine in a turn
MOST_RUNS = 50  # in a block
MOST_TURNS = 500
# An engine's threads spin for a while after a run, and would slow down whoever comes next.
ASLEEP_SECONDS = 0.02


class Timed(Protocol):
    """A library, or a peer."""

    def times(self, inputs: dict[str, Any], runs: int) -> list[float]:
        """Seconds of each of so many runs, one after the other."""


@dataclass(frozen=True)
class Beside:
    """A library beside a peer, or another library, of several shapes by one run in each.

    ours_ms, theirs_ms: medians of a run. ratio: of the first to the second, the median over turns.
    interval: in which the ratio is with 99% confidence; None of fewer than eight turns.
    """

    peer: str
    ours_ms: float
    theirs_ms: float
    ratio: float
    interval: tuple[float, float] | None
    turns: int


def race(library: Timed, peer: Timed, name: str, feeds: Feeds, seconds: float) -> Beside:
    """The library and the peer in turns, for about so many seconds, and once at least.

    name: of the peer. feeds: inputs of each shape.
    """
    runs = [_runs(one, feeds) for one in (library, peer)]
    ours: list[float] = []
    theirs: list[float] = []
    began = time.monotonic()
    while len(ours) < MOST_TURNS:
        ours.append(_block(library, feeds, runs[0]))
        theirs.append(_block(peer, feeds, runs[1]))
        if (time.monotonic() - began) * (1 + 1 / len(ours)) > seconds:
            break
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    medians = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
    spread = interval_of_median(ratios)
    return Beside(name, *medians, statistics.median(ratios), spread, len(ratios))


def _runs(model: Timed, feeds: Feeds) -> int:
    """How many runs are a block."""
    once = sum(min(model.times(inputs, 2)) for inputs in feeds)
    return max(1, min(MOST_RUNS, round(BLOCK_SECONDS / once)))


def _block(model: Timed, feeds: Feeds, runs: int) -> float:
    """Seconds of a run in each shape: the sum of medians, once the engine's threads are awake."""
    time.sleep(ASLEEP_SECONDS)
    for inputs in feeds:
        model.times(inputs, 1)
    return sum(statistics.median(model.times(inputs, runs)) for inputs in feeds)
