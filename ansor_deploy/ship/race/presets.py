"""What a library is used for, and so how many threads a run takes and how many run side by side.

A network's kernels are too short for many threads to share well, so that a machine often does more
in a second with a run on each of its cores than with all cores in one run; and one run may be done
sooner with fewer threads than there are. Which is best, the library says itself: all splits of the
cores run in turns.
"""

from __future__ import annotations

import time
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...errors import AnsorError, UsageError
from ...tune.workspace import can_run
from ..manifest import Draft
from ..preset import Preset, Split
from .fresh import on_this_machine
from .streams import BEGIN_SECONDS, Streams, open_streams

if TYPE_CHECKING:
    from ...request import Request
    from ..shipment import Shipment
    from ..verify.verify import Library
    from .fresh import Local

ROUNDS = 7  # of all splits, one after the other: what disturbs a while meets each alike
_FIGURES = ("per_second", "median_ms")
SLICE_SECONDS = 0.25  # of one split in a round; a run of each of its streams at least


def check_preset(request: Request) -> None:
    """UsageError where the preset that is asked for cannot be measured; a lock may have it."""
    asked, hint = f"--for {request.preset} measures", "leave out --for"
    if request.codes:
        raise UsageError(f"{asked} for one target, and the library is for several", hint)
    if request.frozen:
        return
    if request.devices or not can_run(request):
        where = f"on this machine, and code of {request.target.name} runs elsewhere"
        raise UsageError(f"{asked} {where}", hint)


def with_preset(shipment: Shipment, library: Library, draft: Draft) -> Draft:
    """The manifest of a library with the preset that is asked for. library: on this machine."""
    name = shipment.request.preset
    assert name and on_this_machine(library)  # noqa: S101, PT018 - `check_preset` has said so
    shipment.report.stage("split", f"threads and streams for {name}")
    best, *others = measured(library, shipment)
    preset = Preset(name, best.threads, best.streams, (best, *others))
    shipment.report.preset(preset)
    return replace(draft, preset=preset)


def splits(name: str, cores: int) -> list[tuple[int, int]]:
    """Threads of a run, and runs side by side: all that leave no core idle, or one run alone."""
    threads = [one for one in range(1, cores + 1) if cores % one == 0]
    return [(one, 1 if name == "latency" else cores // one) for one in threads]


def measured(library: Local, shipment: Shipment) -> list[Split]:
    """All splits of the target's cores, as this machine ran them in turns; the best comes first.

    One for which there is no memory is left out, with a warning. AnsorError where none runs.
    """
    name = shipment.request.preset
    wanted = splits(name, shipment.target.cores)
    slices: dict[tuple[int, int], list[Split]] = defaultdict(list)
    shapes = range(len(library.interfaces))
    with open_streams(library, shapes, max(streams for _, streams in wanted)) as side:
        able = [one for one in wanted if _runs(side, *one, shipment)]
        for number in range(ROUNDS):
            for one in able[:: -1 if number % 2 else 1]:
                slices[one].append(_slice(side, *one))
            shipment.report.step("rounds", number + 1, ROUNDS)
    found = [_middle(some) for some in slices.values()]
    return sorted(found, key=lambda one: one.median_ms if name == "latency" else -one.per_second)


def _runs(side: Streams, threads: int, streams: int, shipment: Shipment) -> bool:
    try:
        side.prepare(streams, threads)
    except AnsorError as error:
        if streams == 1:
            raise
        shipment.report.warn(f"{error.text}; fewer streams are tried")
        return False
    return True


def _slice(side: Streams, threads: int, streams: int) -> Split:
    each = side.times(streams, threads, time.monotonic() + BEGIN_SECONDS + SLICE_SECONDS)
    rate = sum(len(times) / sum(times) for times in each)
    return Split(threads, streams, rate, median(taken for times in each for taken in times) * 1e3)


def _middle(slices: list[Split]) -> Split:
    """The medians of a split's slices."""
    rate, taken = (median(getattr(one, name) for one in slices) for name in _FIGURES)
    return replace(slices[0], per_second=rate, median_ms=taken)
