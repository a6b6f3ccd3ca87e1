"""What else a machine does while something is timed on it, as far as the system reports it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

_STEAL = 7  # the column of stolen time in /proc/stat, after the name; see proc(5)
_STEPS = 10_000  # iterations of the reference loop: a fraction of a millisecond
# Shares of stolen time, and spreads of the reference loop, from which on a machine counts as busy.
BUSY_STOLEN = 0.02
BUSY_SPREAD = 1.25


class OtherWork(Struct, frozen=True):
    """What else a machine did in a race. load: programs that wanted to run, over a minute.

    cores: those that this process may use. stolen: the share of the processors' time that the host
    of a virtual machine gave to others. spread: the 90th percentile of the times of a loop that
    always does the same, over their median.
    """

    load: float
    cores: Annotated[int, Meta(ge=0)]
    stolen: Annotated[float, Meta(ge=0, description="a share of the whole, 0 to 1")]
    spread: Annotated[float, Meta(ge=0)]

    @property
    def is_busy(self) -> bool:
        """Whether other work explains times that differ. The timed program is one of `load`."""
        crowded = self.load > self.cores + 0.5
        return crowded or self.stolen >= BUSY_STOLEN or self.spread >= BUSY_SPREAD


class Watch:
    """Watches what else the machine does, from its creation on."""

    def __init__(self) -> None:
        self._began = _jiffies()

    def seen(self, reference: Sequence[float]) -> OtherWork:
        """What has happened so far. reference: seconds that calls of `reference_loop` took."""
        spent = [now - then for now, then in zip(_jiffies(), self._began, strict=True)]
        # The last two columns, of guests, are included in the first two.
        stolen = spent[_STEAL] / max(1, sum(spent[: _STEAL + 1])) if len(spent) > _STEAL else 0.0
        ordered = sorted(reference) or [1.0]
        spread = ordered[9 * len(ordered) // 10] / ordered[len(ordered) // 2]
        cores = len(os.sched_getaffinity(0))
        return OtherWork(os.getloadavg()[0], cores, stolen, spread)


def reference_loop() -> float:
    """The seconds that a loop takes which always does the same."""
    began = time.perf_counter()
    sum(range(_STEPS))
    return time.perf_counter() - began


def _jiffies() -> list[int]:
    with contextlib.suppress(OSError, ValueError):  # not Linux, or no /proc
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
        return [int(column) for column in first.split()[1:]]
    return []
