"""Is the tuned library faster than the untuned one, by how much, and which is to be shipped?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import turn
from .draws import inputs_that_run
from .fresh import fresh_turns, library_side, on_this_machine
from .race import LOOKS, Race, Turn, race

if TYPE_CHECKING:
    from .verify import Library

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

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest's `speed`."""
        found = self.race or Race(UNTUNED, self.latency_ms, self.latency_ms, 1.0, None, 0)
        known = found.to_json()
        return {
            "latency_ms": self.latency_ms,
            "shapes_ms": list(self.shapes_ms),
            "tuned_ms": found.ours_ms,
            "untuned_ms": found.theirs_ms,
            "ratio": found.ratio,
            "interval": found.interval,
            "pairs": found.turns,
            "verdict": found.verdict if self.race else "same" if self.same else None,
            "seen": known["seen"],
        }

    @classmethod
    def from_json(cls, speed: Mapping[str, Any]) -> Comparison:
        """The comparison of a manifest's `speed`."""
        known = {
            **speed,
            "peer": UNTUNED,
            "ours_ms": speed["tuned_ms"],
            "theirs_ms": speed["untuned_ms"],
            "turns": speed["pairs"],
        }
        same, each = speed["verdict"] == "same", tuple(speed["shapes_ms"])
        return cls(each, Race.from_json(known) if speed["pairs"] else None, same)


def time_alone(library: Library, seed: int, *, same: bool = False) -> Comparison:
    """The time of a library by itself. seed: of its inputs. same: as the untuned one."""
    each = turn.alone(library, _feeds(library, seed))
    return Comparison(tuple(seconds * 1e3 for seconds in each), same=same)


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
    each = found.shapes_ms or (found.ours_ms,)
    ships = 1 / found.ratio if found.verdict == "slower" else 1.0
    return Comparison(tuple(ms * ships for ms in each), found)


class _InPlace:
    """Turns of two libraries that stay loaded."""

    def __init__(self, ours: Library, theirs: Library, seed: int) -> None:
        self._sides, self._feeds = (ours, theirs), _feeds(ours, seed)
        turn.warm(self._sides, self._feeds)

    def take(self, ours_first: bool) -> Sequence[Turn]:
        return [turn.take(self._sides, self._feeds, ours_first=ours_first, pause=0.0)]


def _feeds(library: Library, seed: int) -> turn.Feeds:
    return [inputs_that_run(library, one, seed) for one in library.interfaces]
