"""Which of two libraries is faster? Turns, and what they say for sure.

A turn runs both on one load of each: in fresh memory, at other addresses, in an order drawn by lot.
So what depends on where things lie is noise from turn to turn, and no difference; what several
turns share is a constant that the lot gives now to one and now to the other.

What is judged are the logarithms of the turns' ratios. Of two libraries that are the same, the lot
alone says which is called ours: whatever the machine did, each sign is the throw of a fair coin.
So the signed-rank test is exact, under drift and beside other work, too; interval and estimate
are those that go with it: from the k-th smallest to the k-th largest of the means of all pairs of
turns, and the median of these (M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical
Methods, 3rd edition 2014, 3.1 to 3.3). Whoever looks several times and ends when he likes what he
sees errs more often than once: so the looks are few, are fixed before, and each may err by an equal
part of what all may (Bonferroni's inequality).
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
# Turns after which is asked whether that is sure; the first is the fewest that can say so.
LOOKS = (11, 20, 40)
MOST_TURNS = 200
LEAST = 0.01  # share of the time by which one is faster, or nobody is
ALIKE = 0.03  # within this share two are as fast as each other


@dataclass(frozen=True)
class Turn:
    """Seconds of a run of each; of several shapes, the geometric mean.

    reference: those of a loop that always does the same. shapes: ours, in each of its shapes.
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
    """A race with what is sure of it: a difference that counts, or that there is none.

    ours_ms, theirs_ms: a run of each, at the machine's speed in the median turn; of several shapes,
    in the first. ratio: the first over the second, for all shapes. interval: in which it is with
    99% confidence; None of too few turns. seen: what else the machine did; None where nobody
    looked.
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
    """Turns until a look says what is sure, or the time is over, which is then the last look.

    take: makes a turn, or some on the same load; it is given whether ours comes first. until: of
    `time.monotonic`; no turn begins that would end later. looks: numbers of turns; by default one,
    so that all the time is used. least: turns that are made in any case.
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
    """What turns say. error: how often the interval may be wrong."""
    logs = [math.log(turn.ours / turn.theirs) for turn in turns]
    level = statistics.median(math.log(turn.ours * turn.theirs) / 2 for turn in turns)
    means = sorted((a + b) / 2 for a, b in combinations_with_replacement(logs, 2))
    middle, rank = statistics.median(means), least_rank(len(turns), error)
    interval = (math.exp(means[rank - 1]), math.exp(means[-rank])) if rank else None
    ratio, mean = math.exp(middle), math.exp(level + middle / 2) * 1e3
    ours = mean * in_shapes(turns)[0]
    return race_of(peer, ours, ours / ratio, ratio, interval, len(turns), seen)


def in_shapes(turns: Sequence[Turn]) -> tuple[float, ...]:
    """What a run of ours takes in each shape, as parts of the geometric mean over all."""
    parts = [[one / turn.ours for one in turn.shapes or (turn.ours,)] for turn in turns]
    return tuple(map(statistics.median, zip(*parts, strict=True)))


@cache
def least_rank(count: int, error: float) -> int:
    """Rank of the mean of two of so many turns that ends the interval; 0 of too few turns.

    The k-th smallest is above the truth as often as the ranks of a random half of 1, 2, ... count
    sum up to less than k.
    """
    ways = [1]  # to get each sum
    for rank in range(1, count + 1):
        longer = [0] * rank
        ways = [a + b for a, b in zip(ways + longer, longer + ways, strict=True)]
    tail, k = 0, 0
    while 2 * (tail + ways[k]) <= error * 2**count:
        tail += ways[k]
        k += 1
    return k


def _is_over(began: float, until: float, turns: int, least: int) -> bool:
    """Whether there is no time for one more."""
    now = time.monotonic()
    return turns >= least and now + (now - began) / max(1, turns) > until
