"""Plausibility of run times: impossible ones of others are refused, and our own measured again."""

import math
from collections.abc import Sequence
from typing import Any

CALL_SECONDS = 2e-9  # of a call of an empty function; some small kernels take 6 ns
SLOWEST = 3600.0  # the most seconds that a run may take


def median(seconds: Sequence[float]) -> float:
    """The median. `statistics` has one, too, but takes an unchanged build 2 ms to import."""
    ordered, half = sorted(seconds), len(seconds) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(seconds: Sequence[float]) -> float:
    """The distance between the quartiles of some times, as a share of their median."""
    cut = len(seconds) // 4
    middle = sorted(seconds)[cut : len(seconds) - cut]
    return (middle[-1] - middle[0]) / median(seconds)


def impossible(seconds: Any, least: float = CALL_SECONDS) -> str:
    """Why these cannot be the times of a run of at least so many seconds, or "" if they can.

    seconds: one for each repeat. They may come from outside, so any type is possible.
    """
    if not isinstance(seconds, Sequence) or not seconds:
        return "there is no time of a run"
    if not all(type(time) is float and math.isfinite(time) and time <= SLOWEST for time in seconds):
        return "there is a time that is none of a run"
    if (fastest := min(seconds)) < least:
        return f"no machine does this in {fastest:.3g} s: it takes at least {least:.3g} s"
    return ""
