"""Find what keeps a machine's clock below its best, as far as the machine reports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Bits of the Raspberry Pi's firmware: what throttles it now. The bits 16 places higher are for
# what has throttled it since it was switched on.
THROTTLES = ("under-voltage", "frequency capped", "throttled", "soft temperature limit")
STEADY = "performance"


@dataclass(frozen=True)
class Strain:
    """Why times measured now are not those of the machine at its best.

    reasons: in words; none where nothing is wrong, or the machine does not report it. degrees: that
    of its hottest sensor, in Celsius; None where it has no sensor.
    """

    reasons: tuple[str, ...] = ()
    degrees: float | None = None

    def text(self, name: str) -> str:
        """One line for a machine of this name."""
        hot = "" if self.degrees is None else f" (at {self.degrees:.0f} C)"
        return f"{name}: measured while {' and '.join(self.reasons)}{hot}: times are less steady"


def strain(
    governors: Sequence[str], temperatures: Mapping[str, float], throttled: int | None
) -> Strain:
    """The strain that follows from these facts of `probe.py`."""
    reasons = throttles(throttled or 0)
    if others := [name for name in governors if name != STEADY]:
        reasons.append(f"its clock governor is {' and '.join(others)}, not {STEADY}")
    return Strain(tuple(reasons), max(temperatures.values(), default=None))


def throttles(bits: int) -> list[str]:
    """What throttles a board now, from the firmware's bits."""
    return [word for place, word in enumerate(THROTTLES) if bits >> place & 1]
