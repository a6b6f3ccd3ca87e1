"""Is the tuned library faster than the untuned one, by how much, and which is to be shipped?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..manifest import Race, Speed
from ..verify.draws import inputs_that_run
from . import turn
from .fresh import fresh_turns, library_side, on_this_machine
from .race import LOOKS, Turn, in_shapes, race, race_of

if TYPE_CHECKING:
    from ..verify.verify import Library

MOST_SECONDS = 6.0  # after which no further look is waited for; the first one always is
UNTUNED = "untuned"


@dataclass(frozen=True)
class Comparison:
    """What a library that may be shipped takes, and its race with the untuned one.

    shapes_ms: of a run of what is shipped, in each of its shapes. race: None where there was none:
    no task has a record, two have no room, or the two are the same. same: byte by byte, though
    tasks have records.
    """

    shapes_ms: tuple[float, ...]
    race: Race | None = None
    same: bool = False

    @property
    def latency_ms(self) -> float:
        """Of a run, in the first shape."""
        return self.shapes_ms[0]

    @property
    def slower(self) -> bool:
        """Whether the tuned one is surely slower, so that the untuned one is shipped."""
        return self.race is not None and self.race.verdict == "slower"

    def noted(self, beside: Race | None, records: str) -> Speed:
        """As it stands in a manifest. beside: another engine. records: digest of those used."""
        known = self.race or race_of(UNTUNED, self.latency_ms, self.latency_ms, 1.0, None, 0)
        return Speed(
            latency_ms=self.latency_ms,
            shapes_ms=self.shapes_ms,
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
            return cls(speed.shapes_ms, same=speed.verdict == "same")
        times = (speed.tuned_ms, speed.untuned_ms, speed.ratio, speed.interval, speed.pairs)
        return cls(speed.shapes_ms, Race(UNTUNED, *times, speed.verdict, speed.seen))


def time_alone(library: Library, seed: int, *, same: bool = False) -> Comparison:
    """The time of a library by itself. seed: of its inputs. same: as the untuned one."""
    each = turn.alone(library, _feeds(library, seed))
    return Comparison(tuple(seconds * 1e3 for seconds in each), same=same)


def compare_speed(tuned: Library, untuned: Library, seed: int) -> Comparison:
    """The race of two libraries, which ends when it is sure, or after some seconds.

    On this machine each turn loads both anew, from copies that lie for a while in the tuned one's
    folder. On a device both stay loaded. seed: of their inputs.
    """
    until, made = time.monotonic() + MOST_SECONDS, list[Turn]()

    def run(take: Callable[[bool], Sequence[Turn]]) -> Race:
        return race(UNTUNED, lambda first: _kept(made, take(first)), until, LOOKS, LOOKS[0])

    if on_this_machine(tuned) and on_this_machine(untuned):
        sides, shapes = (library_side(tuned), library_side(untuned)), range(len(tuned.interfaces))
        with fresh_turns(*sides, shapes, seed, until, tuned.path.parent) as turns:
            found = run(turns.take)
    else:
        found = run(_InPlace(tuned, untuned, seed).take)
    ships = found.theirs_ms if found.verdict == "slower" else found.ours_ms
    first, *_ = parts = in_shapes(made)
    return Comparison(tuple(ships * part / first for part in parts), found)


def _kept(made: list[Turn], turns: Sequence[Turn]) -> Sequence[Turn]:
    made += turns
    return turns


class _InPlace:
    """Turns of two libraries that stay loaded."""

    def __init__(self, ours: Library, theirs: Library, seed: int) -> None:
        self._sides, self._feeds = (ours, theirs), _feeds(ours, seed)
        turn.warm(self._sides, self._feeds)

    def take(self, ours_first: bool) -> Sequence[Turn]:
        return [turn.take(self._sides, self._feeds, ours_first=ours_first, pause=0.0)]


def _feeds(library: Library, seed: int) -> turn.Feeds:
    return [inputs_that_run(library, one, seed) for one in library.interfaces]
