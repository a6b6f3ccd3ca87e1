"""Times that no machine can have taken: of others they are refused, of this machine taken again."""

import math
from collections.abc import Sequence
from typing import Any

CALL_SECONDS = 2e-9  # the call of an empty function; of small kernels some take 6 ns
SLOWEST = 3600.0  # seconds


def median(seconds: Sequence[float]) -> float:
    """The time in the middle. `statistics` says the same, and takes 2 ms of an unchanged build."""
    ordered, half = sorted(seconds), len(seconds) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(seconds: Sequence[float]) -> float:
    """How far the middle half of times lies apart, as a share of their median."""
    cut = len(seconds) // 4
    middle = sorted(seconds)[cut : len(seconds) - cut]
    return (middle[-1] - middle[0]) / median(seconds)


def impossible(seconds: Any, least: float = CALL_SECONDS) -> str:
    """Why these are no times of one run, each at least so long; "" if they may be.

    seconds: of each repeat, from wherever: anything may stand there.
    """
    if not isinstance(seconds, Sequence) or not seconds:
        return "there is no time of a run"
    if not all(type(time) is float and math.isfinite(time) and time <= SLOWEST for time in seconds):
        return "there is a time that is none of a run"
    if (fastest := min(seconds)) < least:
        return f"no machine does this in {fastest:.3g} s: it takes at least {least:.3g} s"
    return ""
