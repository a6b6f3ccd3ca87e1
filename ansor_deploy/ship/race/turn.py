"""One turn of a race: two that are loaded run in blocks, and neither is in the other's way.

Thread pools of several engines in one process spin for a while after a run, which makes them fast
and would slow the others down. Spinning is left on, since it is each one's default: instead, before
each block of runs, all are given the time to fall asleep, and what wakes one is not counted. All
libraries share one pool, and need no pause.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ...system.other_work import reference_loop
from .race import Turn

PAUSE_SECONDS = 0.1  # ONNX Runtime's threads spin for 0.03 s on the machine of our figures
BLOCK_SECONDS = 10e-3  # of one side, in a run's every shape
MOST_RUNS = 50
UNCOUNTED = 3  # runs that wake one after a pause; of a slow network fewer, but one
WARM_SECONDS = 0.05
BLOCKS = 8  # of a library that runs alone
SLOW_SECONDS = 0.05  # of a block: then each has one in a turn, and not two

Feeds = Sequence[dict[str, Any]]  # inputs, of each shape that a run is made in


class Timed(Protocol):
    """A library, or an engine with a model."""

    def times(self, inputs: dict[str, Any], runs: int) -> list[float]:
        """Seconds of each of so many runs, one after the other."""


def take(sides: tuple[Timed, Timed], feeds: Feeds, *, ours_first: bool, pause: float) -> Turn:
    """Ours and theirs in blocks: a b b a where both are fast, so that a drift meets both alike.

    ours_first: whether ours is a. pause: seconds before a block; 0 where they share their threads.
    """
    first, second = (0, 1) if ours_first else (1, 0)
    blocks: tuple[list[list[float]], list[list[float]]] = ([], [])
    reference = []
    for at in (first, second, second, first):
        if len(blocks[at]) == 1 and (pause or sum(blocks[at][0]) > SLOW_SECONDS):
            continue
        reference.append(reference_loop())
        blocks[at].append(_block(sides[at], feeds, pause))
    ours, theirs = (
        tuple(statistics.geometric_mean(times) for times in zip(*some, strict=True))
        for some in blocks
    )
    means = statistics.geometric_mean(ours), statistics.geometric_mean(theirs)
    return Turn(*means, tuple(reference), ours)


def warm(sides: Iterable[Timed], feeds: Feeds) -> None:
    """Run each a few times: the first run of a library takes longer."""
    for side in sides:
        for inputs in feeds:
            _timed(side, inputs, BLOCK_SECONDS, UNCOUNTED)


def alone(library: Timed, feeds: Feeds) -> list[float]:
    """Seconds of a run of one by itself, in each shape: the medians of blocks."""
    warm([library], feeds)
    seconds = [_block(library, feeds, 0.0) for _ in range(BLOCKS)]
    return [statistics.median(times) for times in zip(*seconds, strict=True)]


def _block(side: Timed, feeds: Feeds, pause: float) -> list[float]:
    """Seconds of one run in each shape: the medians of some runs."""
    if pause:
        time.sleep(pause)
        _timed(side, feeds[0], WARM_SECONDS, UNCOUNTED)
    share = BLOCK_SECONDS / len(feeds)
    return [statistics.median(_timed(side, inputs, share, MOST_RUNS)) for inputs in feeds]


def _timed(side: Timed, inputs: dict[str, Any], seconds: float, most: int) -> list[float]:
    """Seconds of each run, until so many have passed or runs been made; at least one."""
    times = side.times(inputs, 1)
    if (more := min(most, round(seconds / max(times[0], 1e-7))) - 1) > 0:
        times += side.times(inputs, more)
    return times
