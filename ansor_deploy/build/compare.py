"""Is the tuned library faster than the untuned one, by how much, and which is to be shipped?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..artifact.manifest import Race, Speed
from . import turn
from .draws import inputs_that_run
from .fresh import fresh_turns, library_side, on_this_machine
from .race import LOOKS, Turn, race, race_of

if TYPE_CHECKING:
    from .verify import Library

MOST_SECONDS = 6.0  # after which no further look is waited for; the first one always is
UNTUNED = "untuned"


@dataclass(frozen=True)
class Comparison:
    """What a library that may be shipped takes, and its race with the untuned one.

    latency_ms: of a run of what is shipped; of several shapes, of one in each. race: None where
    there was none: no task has a record, two have no room, or the two are the same. same: byte by
    byte, though tasks have records.
    """

    latency_ms: float
    race: Race | None = None
    same: bool = False

    @property
    def slower(self) -> bool:
        """Whether the tuned one is surely slower, so that the untuned one is shipped."""
        return self.race is not None and self.race.verdict == "slower"

    def noted(self, beside: Race | None, records: str) -> Speed:
        """As it stands in a manifest. beside: another engine. records: digest of those used."""
        known = self.race or race_of(UNTUNED, self.latency_ms, self.latency_ms, 1.0, None, 0)
        return Speed(
            latency_ms=self.latency_ms,
            tuned_ms=known.ours_ms,
            untuned_ms=known.theirs_ms,
            ratio=known.ratio,
            interval=known.interval,
            pairs=known.turns,
            verdict=known.verdict if self.race else "same" if self.same else None,
            seen=known.seen,
            beside=beside,
            records=records,
        )

    @classmethod
    def of(cls, speed: Speed) -> Comparison:
        """The comparison that a manifest has."""
        if speed.verdict is None or speed.verdict == "same":
            return cls(speed.latency_ms, same=speed.verdict == "same")
        times = (speed.tuned_ms, speed.untuned_ms, speed.ratio, speed.interval, speed.pairs)
        return cls(speed.latency_ms, Race(UNTUNED, *times, speed.verdict, speed.seen))


def time_alone(library: Library, seed: int, *, same: bool = False) -> Comparison:
    """The time of a library by itself. seed: of its inputs. same: as the untuned one."""
    return Comparison(turn.alone(library, _feeds(library, seed)) * 1e3, same=same)


def compare_speed(tuned: Library, untuned: Library, seed: int) -> Comparison:
    """The race of two libraries, which ends when it is sure, or after some seconds.

    On this machine each turn loads both anew, from copies that lie for a while in the tuned one's
    folder. On a device both stay loaded. seed: of their inputs.
    """
    until = time.monotonic() + MOST_SECONDS
    if on_this_machine(tuned) and on_this_machine(untuned):
        sides, shapes = (library_side(tuned), library_side(untuned)), range(len(tuned.interfaces))
        with fresh_turns(*sides, shapes, seed, until, tuned.path.parent) as turns:
            found = race(UNTUNED, turns.take, until, LOOKS, LOOKS[0])
    else:
        found = race(UNTUNED, _InPlace(tuned, untuned, seed).take, until, LOOKS, LOOKS[0])
    return Comparison(found.theirs_ms if found.verdict == "slower" else found.ours_ms, found)


class _InPlace:
    """Turns of two libraries that stay loaded."""

    def __init__(self, ours: Library, theirs: Library, seed: int) -> None:
        self._sides, self._feeds = (ours, theirs), _feeds(ours, seed)
        turn.warm(self._sides, self._feeds)

    def take(self, ours_first: bool) -> Sequence[Turn]:
        return [turn.take(self._sides, self._feeds, ours_first=ours_first, pause=0.0)]


def _feeds(library: Library, seed: int) -> turn.Feeds:
    return [inputs_that_run(library, one, seed) for one in library.interfaces]
