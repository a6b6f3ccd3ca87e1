"""Is the tuned library faster? It and the untuned one run in turns until that is sure."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .verify import Library

CONFIDENCE = 0.99
# Numbers of pairs after which is asked whether that is sure. Of eight the interval is all of them.
LOOKS = (8, 16, 32, 64)
MOST_SECONDS = 6.0  # after which no further look is waited for
_BLOCK_SECONDS = 10e-3  # of one library in a pair
_BLOCK_RUNS = 50


@dataclass(frozen=True)
class Comparison:
    """A tuned library beside the untuned one, of several shapes by one run in each.

    tuned_ms, untuned_ms: medians of a run. ratio: of the first to the second, the median of pairs.
    interval: in which the ratio is with 99% confidence; None where one library is both. pairs: how
    many there are.
    """

    tuned_ms: float
    untuned_ms: float
    ratio: float = 1.0
    interval: tuple[float, float] | None = None
    pairs: int = 0

    @property
    def faster(self) -> bool:
        """Whether the tuned one is surely faster."""
        return self.interval is not None and self.interval[1] < 1

    @property
    def slower(self) -> bool:
        """Whether the tuned one is surely slower."""
        return self.interval is not None and self.interval[0] > 1


def compare_speed(tuned: Library, untuned: Library, feeds: Sequence[dict[str, Any]]) -> Comparison:
    """Pairs of runs, so that a drift of the machine's speed meets both alike.

    feeds: inputs of each shape. They go on until the interval excludes 1, or the pairs or the time
    are spent. A library that is both is timed by itself.
    """
    sides = [tuned] if untuned is tuned else [tuned, untuned]
    once = max(seconds for model in sides for inputs in feeds for seconds in model.times(inputs, 1))
    runs = max(1, min(_BLOCK_RUNS, round(_BLOCK_SECONDS / once)))
    times: list[list[float]] = [[] for _ in sides]
    began = time.monotonic()
    for look in LOOKS:
        while len(times[0]) < look:
            turn = range(len(sides)) if len(times[0]) % 2 else reversed(range(len(sides)))
            for at in turn:
                times[at].append(_seconds(sides[at], feeds, runs))
        found = _comparison(times)
        # To the next look it takes as long again.
        sure = found.faster or found.slower or found.interval is None
        if sure or 2 * (time.monotonic() - began) > MOST_SECONDS:
            break
    return found


def interval_of_median(values: Sequence[float]) -> tuple[float, float] | None:
    """An interval with the median of what the values are drawn from; None of too few.

    From the k-th smallest to the k-th largest, by the sign test: whatever the distribution, fewer
    than k of n values are below its median as often as n fair coins show fewer than k heads
    (W. J. Conover, Practical Nonparametric Statistics, 3rd edition 1999, 3.2).
    """
    count, k, tail = len(values), 0, 0
    while 2 * (tail + comb(count, k)) <= (1 - CONFIDENCE) * 2**count:
        tail += comb(count, k)
        k += 1
    ordered = sorted(values)
    return (ordered[k - 1], ordered[-k]) if k else None


def _seconds(model: Library, feeds: Sequence[dict[str, Any]], runs: int) -> float:
    """Seconds of one run in each shape: the sum of the medians of so many."""
    return sum(statistics.median(model.times(inputs, runs)) for inputs in feeds)


def _comparison(times: Sequence[Sequence[float]]) -> Comparison:
    medians = [statistics.median(taken) * 1e3 for taken in times]
    if len(times) == 1:
        return Comparison(medians[0], medians[0])
    ratios = [tuned / untuned for tuned, untuned in zip(*times, strict=True)]
    ratio, interval = statistics.median(ratios), interval_of_median(ratios)
    return Comparison(medians[0], medians[1], ratio, interval, len(ratios))
