"""Race the tuned library with the untuned one, to decide which is shipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..manifest import UNTUNED, Race, Speed
from ..verify.draws import inputs_that_run
from . import turn
from .fresh import fresh_turns, library_side, on_this_machine
from .race import LOOKS, Turn, in_shapes, race

if TYPE_CHECKING:
    from ..verify.verify import Library

MOST_SECONDS = 6.0  # the limit of the race; but the first look is always reached


def time_alone(library: Library, seed: int, *, same: bool) -> Speed:
    """The times of a library alone. seed: that of its inputs. same: it equals the untuned one."""
    each = turn.alone(library, _feeds(library, seed))
    return Speed.alone(tuple(seconds * 1e3 for seconds in each), same=same)


def compare_speed(tuned: Library, untuned: Library, seed: int) -> Speed:
    """The times of two libraries in a race, which ends when it is sure, or after some seconds.

    On this machine each turn loads both anew, from temporary copies in the tuned one's folder. On a
    device both stay loaded. seed: that of their inputs.
    """
    until, turns_made = time.monotonic() + MOST_SECONDS, list[Turn]()

    def run(take: Callable[[bool], Sequence[Turn]]) -> Race:
        return race(UNTUNED, lambda first: _kept(turns_made, take(first)), until, LOOKS, LOOKS[0])

    if on_this_machine(tuned) and on_this_machine(untuned):
        sides, shapes = (library_side(tuned), library_side(untuned)), range(len(tuned.interfaces))
        with fresh_turns(*sides, shapes, seed, until, tuned.path.parent) as turns:
            raced = run(turns.take)
    else:
        raced = run(_InPlace(tuned, untuned, seed).take)
    ships = raced.theirs_ms if raced.verdict == "slower" else raced.ours_ms
    first, *_ = parts = in_shapes(turns_made)
    return Speed.raced(tuple(ships * part / first for part in parts), raced)


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
