"""Decide which of two libraries is faster, by turns and an exact statistical test.

A turn runs both on one load of each: in fresh memory, at other addresses, in a random order. So
effects of memory placement are noise from turn to turn, not a difference; and effects that several
turns share favour now one and now the other, since the order is random.

The logarithms of the turns' ratios are judged. If two libraries are the same, only the random order
decides which is called ours: whatever the machine did, each sign is a fair coin toss. So the
signed-rank test is exact, also under drift and beside other work. Its interval and estimate are
used: from the k-th smallest to the k-th largest of the means of all pairs of turns, and the median
of these (M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd edition
2014, 3.1 to 3.3). Looking several times and stopping at a pleasing result would raise the error: so
the looks are few and fixed in advance, and each gets an equal part of the total error (Bonferroni's
inequality).
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

from ...system.other_work import OtherWork, Watch
from ..manifest import Interval, Race, Verdict

ERROR = 0.005  # how often a race may err: half of the one in a hundred that is promised
# Numbers of turns after which to look for a verdict; the first is the fewest that can give one.
LOOKS = (11, 20, 40)
MOST_TURNS = 200
LEAST = 0.01  # the least share of the time that counts as faster or slower
ALIKE = 0.03  # within this share of the time, two are equally fast


@dataclass(frozen=True)
class Turn:
    """Seconds of a run of each side; the geometric mean over several shapes.

    reference: seconds of a loop that always does the same work. shapes: ours, in each shape.
    """

    ours: float
    theirs: float
    reference: tuple[float, ...] = ()
    shapes: tuple[float, ...] = ()


def race_of(
    peer: str,
    ours_ms: float,
    theirs_ms: float,
    ratio: float,
    interval: Interval | None,
    turns: int,
    seen: OtherWork | None = None,
) -> Race:
    """A race with its verdict: a sure difference, surely none, or undecided.

    ours_ms, theirs_ms: a run of each, at the machine's speed in the median turn, in the first of
    several shapes. ratio: ours over theirs, for all shapes. interval: the 99% confidence interval
    of the ratio; None after too few turns. seen: other work that the machine did; None where that
    was not observed.
    """
    low, high = interval or (0.0, math.inf)
    verdict: Verdict = "as fast" if low >= 1 - ALIKE and high <= 1 + ALIKE else "cannot say"
    if high < 1 and ratio <= 1 - LEAST:
        verdict = "faster"
    if low > 1 and ratio >= 1 + LEAST:
        verdict = "slower"
    return Race(peer, ours_ms, theirs_ms, ratio, interval, turns, verdict, seen)


def race(
    peer: str,
    take: Callable[[bool], Sequence[Turn]],
    until: float,
    looks: Sequence[int] = (MOST_TURNS,),
    least: int = 1,
) -> Race:
    """Make turns until a look gives a verdict, or the time is over, which is the last look.

    take: makes a turn, or several on one load; its argument is whether ours comes first. until: a
    time of `time.monotonic`; no turn begins that would end later. looks: the numbers of turns after
    which to look; by default one, so that all the time is used. least: turns to make in any case.
    """
    watch, began, turns = Watch(), time.monotonic(), list[Turn]()
    for look in looks:
        while not (is_over := _is_over(began, until, len(turns), least)) and len(turns) < look:
            turns += take(random.random() < 0.5)  # noqa: S311 - no secret
        seen = watch.seen([seconds for turn in turns for seconds in turn.reference])
        judgement = judged(peer, turns, ERROR / len(looks), seen)
        if is_over or judgement.verdict != "cannot say":
            break
    return judgement


def judged(peer: str, turns: Sequence[Turn], error: float, seen: OtherWork | None = None) -> Race:
    """The race that these turns give. error: how often the interval may be wrong."""
    logs = [math.log(turn.ours / turn.theirs) for turn in turns]
    level = statistics.median(math.log(turn.ours * turn.theirs) / 2 for turn in turns)
    means = sorted((a + b) / 2 for a, b in combinations_with_replacement(logs, 2))
    middle, rank = statistics.median(means), least_rank(len(turns), error)
    interval = (math.exp(means[rank - 1]), math.exp(means[-rank])) if rank else None
    ratio, mean = math.exp(middle), math.exp(level + middle / 2) * 1e3
    ours = mean * in_shapes(turns)[0]
    return race_of(peer, ours, ours / ratio, ratio, interval, len(turns), seen)


def in_shapes(turns: Sequence[Turn]) -> tuple[float, ...]:
    """The time of our run in each shape, relative to the geometric mean over all shapes."""
    parts = [[one / turn.ours for one in turn.shapes or (turn.ours,)] for turn in turns]
    return tuple(map(statistics.median, zip(*parts, strict=True)))


@cache
def least_rank(count: int, error: float) -> int:
    """The rank k of the pairs' mean that ends the interval, for `count` turns; 0 if too few.

    The k-th smallest mean exceeds the truth with the probability that a random subset of the ranks
    1, 2, ... count sums to less than k.
    """
    ways = [1]  # the number of subsets with each sum
    for rank in range(1, count + 1):
        longer = [0] * rank
        ways = [a + b for a, b in zip(ways + longer, longer + ways, strict=True)]
    tail, k = 0, 0
    while 2 * (tail + ways[k]) <= error * 2**count:
        tail += ways[k]
        k += 1
    return k


def _is_over(began: float, until: float, turns: int, least: int) -> bool:
    """Whether there is no time for another turn."""
    now = time.monotonic()
    return turns >= least and now + (now - began) / max(1, turns) > until
