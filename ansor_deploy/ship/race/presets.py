"""Find the best split of the cores for a preset: threads of a run, and runs side by side.

Many threads cannot share a network's short kernels well, so a machine often does more runs a second
with one run on each core than with all cores in one run; and a single run may be faster with fewer
threads than cores. The best split is measured: all splits run in turns.
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

ROUNDS = 7  # of all splits, one after the other, so that a disturbance affects all alike
_FIGURES = ("per_second", "median_ms")
SLICE_SECONDS = 0.25  # of one split in a round; at least one run of each of its streams


def check_preset(request: Request) -> None:
    """UsageError where the requested preset cannot be measured; a frozen build reads its lock's."""
    asked, hint = f"--for {request.preset} measures", "leave out --for"
    if request.codes:
        raise UsageError(f"{asked} one target, and the library is for several", hint)
    if request.frozen:
        return
    if request.devices or not can_run(request):
        where = f"on this machine, and code of {request.target.name} runs elsewhere"
        raise UsageError(f"{asked} {where}", hint)


def with_preset(shipment: Shipment, library: Library, draft: Draft) -> Draft:
    """The manifest of a library with the requested preset. library: one on this machine."""
    name = shipment.request.preset
    assert name and on_this_machine(library)  # noqa: S101, PT018 - `check_preset` made sure
    shipment.report.stage("split", f"threads and streams for {name}")
    best, *others = measured(library, shipment)
    preset = Preset(name, best.threads, best.streams, (best, *others))
    shipment.report.preset(preset)
    return replace(draft, preset=preset)


def splits(name: str, cores: int) -> list[tuple[int, int]]:
    """All splits (threads of a run, runs side by side) that use all cores; for latency one run."""
    threads = [one for one in range(1, cores + 1) if cores % one == 0]
    return [(one, 1 if name == "latency" else cores // one) for one in threads]


def measured(library: Local, shipment: Shipment) -> list[Split]:
    """All splits of the target's cores, measured in turns on this machine; the best comes first.

    A split for which there is not enough memory is left out, with a warning. AnsorError where none
    runs.
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
    """A split with the medians of its slices."""
    rate, taken = (median(getattr(one, name) for one in slices) for name in _FIGURES)
    return replace(slices[0], per_second=rate, median_ms=taken)
