"""Which of several schedules is the fastest, told from times that were taken in turns."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

# A challenger must be faster by this share, in all turns but one: nine fair coins show as many
# heads in one of fifty throws. What is less sure is noise, and noise changes nothing.
MARGIN = 0.01
DOUBTFUL_TURNS = 1


def winner(times: Sequence[Sequence[float]]) -> int:
    """Position of the schedule that stands. times: seconds in each turn; the incumbent's first.

    The incumbent stands unless a challenger is surely faster; of several such, the one with the
    smallest median wins. A schedule without times has failed and cannot win.
    """
    incumbent = times[0]
    sure = [
        at
        for at, challenger in enumerate(times)
        if at and challenger and (not incumbent or faster(challenger, incumbent))
    ]
    return min(sure, key=lambda at: median(times[at]), default=0)


def faster(challenger: Sequence[float], incumbent: Sequence[float]) -> bool:
    """Whether turn by turn the challenger is faster beyond doubt."""
    ratios = [c / i for c, i in zip(challenger, incumbent, strict=True)]
    lost = sum(ratio >= 1 for ratio in ratios)
    return median(ratios) <= 1 - MARGIN and lost <= DOUBTFUL_TURNS
