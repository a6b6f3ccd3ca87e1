"""What else a machine does while something is timed on it, where the system says so."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

_STEAL = 7  # its column of /proc/stat, after the name; proc(5)
_STEPS = 10_000  # of the reference loop: a fraction of a millisecond
BUSY_STOLEN, BUSY_SPREAD = 0.02, 1.25  # from which on a machine is said to be busy


class OtherWork(Struct, frozen=True):
    """What else a machine did in a race. load: programs that wanted to run, over a minute.

    cores: that this process may use. stolen: share of the processors' time that the host of a
    virtual machine gave to others. spread: of a loop that always does the same, the time that a
    tenth of its runs exceed, over the median.
    """

    load: float
    cores: Annotated[int, Meta(ge=0)]
    stolen: Annotated[float, Meta(ge=0, description="a share of the whole, 0 to 1")]
    spread: Annotated[float, Meta(ge=0)]

    @property
    def is_busy(self) -> bool:
        """Whether that explains times that differ. Who is timed counts as one program."""
        crowded = self.load > self.cores + 0.5
        return crowded or self.stolen >= BUSY_STOLEN or self.spread >= BUSY_SPREAD


class Watch:
    """Sees what else the machine does from now on."""

    def __init__(self) -> None:
        self._began = _jiffies()

    def seen(self, reference: Sequence[float]) -> OtherWork:
        """What there was until now. reference: seconds that `reference_loop` took now and then."""
        spent = [now - then for now, then in zip(_jiffies(), self._began, strict=True)]
        # The last two columns, of guests, are in the first two, too.
        stolen = spent[_STEAL] / max(1, sum(spent[: _STEAL + 1])) if len(spent) > _STEAL else 0.0
        ordered = sorted(reference) or [1.0]
        spread = ordered[9 * len(ordered) // 10] / ordered[len(ordered) // 2]
        cores = len(os.sched_getaffinity(0))
        return OtherWork(os.getloadavg()[0], cores, stolen, spread)


def reference_loop() -> float:
    """Seconds of a loop that always does the same."""
    began = time.perf_counter()
    sum(range(_STEPS))
    return time.perf_counter() - began


def _jiffies() -> list[int]:
    with contextlib.suppress(OSError, ValueError):  # no Linux, or no /proc
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
        return [int(column) for column in first.split()[1:]]
    return []
