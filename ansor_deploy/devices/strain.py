"""What keeps a machine's clock below what it could be, as far as the machine says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Bits of the Raspberry Pi's firmware: what holds it back now; 16 places up, what has since it
# was switched on.
THROTTLES = ("under-voltage", "frequency capped", "throttled", "soft temperature limit")
STEADY = "performance"


@dataclass(frozen=True)
class Strain:
    """Why times that are taken now are not those of the machine at its best.

    reasons: in words; none where nothing is the matter, or the machine does not say. degrees:
    Celsius, of its hottest sensor; None where it has none.
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
    """What these facts of `probe.py` come to."""
    reasons = throttles(throttled or 0)
    if others := [name for name in governors if name != STEADY]:
        reasons.append(f"its clock governor is {' and '.join(others)}, not {STEADY}")
    return Strain(tuple(reasons), max(temperatures.values(), default=None))


def throttles(bits: int) -> list[str]:
    """What the firmware's bits say that holds a board back now."""
    return [word for place, word in enumerate(THROTTLES) if bits >> place & 1]
