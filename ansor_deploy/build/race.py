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
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations_with_replacement
from typing import Any, Literal

from msgspec import structs

from ..artifact import manifest
from ..system.other_work import OtherWork, Watch

ERROR = 0.005  # how often a race may err: half of the one in a hundred that is promised
# Turns after which is asked whether that is sure; the first is the fewest that can say so.
LOOKS = (11, 20, 40)
MOST_TURNS = 200
LEAST = 0.01  # share of the time by which one is faster, or nobody is
ALIKE = 0.03  # within this share two are as fast as each other

Verdict = Literal["faster", "slower", "as fast", "cannot say"]
VERDICTS: tuple[Verdict, ...] = ("faster", "slower", "as fast", "cannot say")


@dataclass(frozen=True)
class Turn:
    """Seconds of a run of each. reference: those of a loop that always does the same."""

    ours: float
    theirs: float
    reference: tuple[float, ...] = ()


@dataclass(frozen=True)
class Race:
    """A library beside a peer: another library, or an engine.

    ours_ms, theirs_ms: a run of each, at the machine's speed in the median turn. ratio: the first
    over the second. interval: in which it is with 99% confidence; None of too few turns. seen: what
    else the machine did; None where nobody looked.
    """

    peer: str
    ours_ms: float
    theirs_ms: float
    ratio: float
    interval: tuple[float, float] | None
    turns: int
    seen: OtherWork | None = None

    @property
    def verdict(self) -> Verdict:
        """What is sure: a difference that counts, or that there is none."""
        low, high = self.interval or (0.0, math.inf)
        if high < 1 and self.ratio <= 1 - LEAST:
            return "faster"
        if low > 1 and self.ratio >= 1 + LEAST:
            return "slower"
        return "as fast" if low >= 1 - ALIKE and high <= 1 + ALIKE else "cannot say"

    @property
    def noted(self) -> manifest.Race:
        """As it stands in a manifest: with the verdict."""
        seen = manifest.OtherWork(**asdict(self.seen)) if self.seen else None
        return manifest.Race(**{**vars(self), "seen": seen}, verdict=self.verdict)

    def to_json(self) -> dict[str, Any]:
        """A JSON object, with the verdict."""
        return {**asdict(self), "verdict": self.verdict}

    @classmethod
    def of(cls, noted: manifest.Race) -> Race:
        """The race that a manifest has."""
        known = {name: getattr(noted, name) for name in cls.__dataclass_fields__}
        seen = OtherWork(**structs.asdict(noted.seen)) if noted.seen else None
        return cls(**{**known, "seen": seen})


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
        found = judged(peer, turns, ERROR / len(looks), seen)
        if is_over or found.verdict != "cannot say":
            break
    return found


def judged(peer: str, turns: Sequence[Turn], error: float, seen: OtherWork | None = None) -> Race:
    """What turns say. error: how often the interval may be wrong."""
    logs = [math.log(turn.ours / turn.theirs) for turn in turns]
    level = statistics.median(math.log(turn.ours * turn.theirs) / 2 for turn in turns)
    means = sorted((a + b) / 2 for a, b in combinations_with_replacement(logs, 2))
    middle, rank = statistics.median(means), least_rank(len(turns), error)
    interval = (math.exp(means[rank - 1]), math.exp(means[-rank])) if rank else None
    ours, theirs = (math.exp(level + sign * middle / 2) * 1e3 for sign in (1, -1))
    return Race(peer, ours, theirs, math.exp(middle), interval, len(turns), seen)


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
