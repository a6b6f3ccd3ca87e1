"""How fast is a library beside another engine, or library? They run in turns, none in the way.

Several thread pools share one process: all spin for a while after a run, which is what makes them
fast and what would slow the others down. Spinning is left on, since it is each one's default.
Instead they take turns in blocks of runs; before each block all pools are given time to fall
asleep, and the first runs of a block, which wake them, are not counted.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from .compare import interval_of_median

PAUSE_SECONDS = 0.1  # ONNX Runtime's threads spin for 0.03 s on the machine of our figures
UNCOUNTED = 3  # runs at the start of a block; of a slow network fewer, but one
WARM_SECONDS = 0.05
TURNS = 12  # that a race should have, with blocks not shorter or longer than these
SHORTEST_SECONDS, BLOCK_SECONDS = 20e-3, 0.5
MOST_TURNS = 500
TURNS_TO_TELL = 8  # the fewest that make an interval

Run = Callable[[], float]  # of an engine once: the seconds that it took


class Timed(Protocol):
    """A library, or a peer."""

    def times(self, inputs: dict[str, Any], runs: int) -> list[float]:
        """Seconds of each of so many runs, one after the other."""


@dataclass(frozen=True)
class Beside:
    """A library beside a peer, or another library.

    ours_ms, theirs_ms: medians of a run. ratio: of the first to the second, the median over turns.
    interval: in which the ratio is with 99% confidence; None of fewer than eight turns.
    """

    peer: str
    ours_ms: float
    theirs_ms: float
    ratio: float
    interval: tuple[float, float] | None
    turns: int


def race(
    library: Timed,
    peer: Timed,
    name: str,
    inputs: dict[str, Any],
    seconds: float,
    least: int = 1,
) -> Beside:
    """The library and the peer in turns, for about so many seconds.

    Where these are too few turns to tell which is faster, up to twice as many seconds are taken.
    name: of the peer. least: turns that are taken in any case.
    """
    runs = [partial(_once, one, inputs) for one in (library, peer)]
    share = seconds / (TURNS * len(runs)) - PAUSE_SECONDS
    block = min(max(share, SHORTEST_SECONDS), BLOCK_SECONDS)
    began, found = time.monotonic(), []
    for turn in itertools.islice(in_turns(runs, block), MOST_TURNS):
        found.append(turn)
        limit = seconds if len(found) >= TURNS_TO_TELL else 2 * seconds
        is_over = (time.monotonic() - began) * (1 + 1 / len(found)) > limit
        if is_over and len(found) >= least:
            break
    ours, theirs = zip(*found, strict=True)
    ratios = [one / other for one, other in found]
    medians = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
    spread = interval_of_median(ratios)
    return Beside(name, *medians, statistics.median(ratios), spread, len(ratios))


def in_turns(runs: Sequence[Run], seconds: float = BLOCK_SECONDS) -> Iterator[list[float]]:
    """Turn after turn, without end: of each runner the median of a block of so many seconds.

    Each turn begins with another one.
    """
    for number in itertools.count():
        order = sorted(range(len(runs)), key=lambda at: (at - number) % len(runs))
        found = {at: statistics.median(_block(runs[at], seconds)) for at in order}
        yield [found[at] for at in range(len(runs))]


def _once(model: Timed, inputs: dict[str, Any]) -> float:
    return model.times(inputs, 1)[0]


def _block(run: Run, seconds: float) -> list[float]:
    time.sleep(PAUSE_SECONDS)
    _timed(run, WARM_SECONDS, most=UNCOUNTED)
    return _timed(run, seconds)


def _timed(run: Run, seconds: float, most: float = math.inf) -> list[float]:
    """Seconds of each run, until so many have passed or runs been made; at least one."""
    times: list[float] = []
    total = 0.0
    while not times or (total < seconds and len(times) < most):
        times.append(run())
        total += times[-1]
    return times
