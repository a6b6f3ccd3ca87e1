"""One turn of a race: two loaded sides run in alternating blocks, without disturbing each other.

After a run, an engine's thread pool spins for a while, which makes its next run fast but slows down
other engines in the process. Spinning is left on, since it is each engine's default. Instead there
is a pause before each block of runs, so that all pools fall asleep, and the runs that wake one are
not counted. All our libraries share one pool, and need no pause.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ...system.other_work import reference_loop
from .race import Turn

PAUSE_SECONDS = 0.1  # ONNX Runtime's threads spin for 0.03 s on the machine of our figures
BLOCK_SECONDS = 10e-3  # of one side, for all shapes of a run together
MOST_RUNS = 50  # of a block, in each shape
UNCOUNTED = 3  # runs that wake a side after a pause; at least one if the network is slow
WARM_SECONDS = 0.05  # the most seconds of these runs
BLOCKS = 8  # of a library that runs alone
SLOW_SECONDS = 0.05  # if a block takes longer, each side has one block in a turn instead of two

Feeds = Sequence[dict[str, Any]]  # inputs for each shape that a run is made in


class Timed(Protocol):
    """A library, or an engine with a model."""

    def times(self, inputs: dict[str, Any], runs: int) -> list[float]:
        """Seconds of each run of `runs`, one after the other."""


def take(sides: tuple[Timed, Timed], feeds: Feeds, *, ours_first: bool, pause: float) -> Turn:
    """Time both sides in blocks: a b b a where both are fast, so that drift affects them alike.

    ours_first: whether ours is a. pause: seconds before a block; 0 where they share a thread pool.
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
    """Run each side a few times, since the first run of a library takes longer."""
    for side in sides:
        for inputs in feeds:
            _timed(side, inputs, BLOCK_SECONDS, UNCOUNTED)


def alone(library: Timed, feeds: Feeds) -> list[float]:
    """Seconds of a run of a library alone, in each shape: the medians of blocks."""
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
    """Seconds of each run, for about so many seconds; at least one and at most `most` runs."""
    times = side.times(inputs, 1)
    if (more := min(most, round(seconds / max(times[0], 1e-7))) - 1) > 0:
        times += side.times(inputs, more)
    return times
