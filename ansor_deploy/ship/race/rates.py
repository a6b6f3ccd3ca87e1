"""Serve requests that come at a given rate, on this machine's streams or on a device."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...devices.arrivals import MOST, arrivals, span, summed_up
from ...devices.remote_model import RemoteModel
from ...errors import UsageError
from ..library import opened
from ..verify.draws import inputs_that_run
from .streams import open_streams

if TYPE_CHECKING:
    from ...devices.arrivals import Served
    from ...runtime.model import Model
    from ...views import Report


def bench_rate(
    artifact: Path,
    rate: float,
    seconds: float,
    threads: int,
    streams: int,
    devices: Sequence[str] | None,
    report: Report,
) -> Served:
    """How requests at this rate (a second) are served, with one queue for all streams.

    Requests take turns in the shapes. seconds: how long requests come, after all is loaded.
    threads: those of a run. devices: as in `bench`; a device has one stream. UsageError where that
    is more requests than can be kept.
    """
    if rate * seconds > MOST:
        most = f"at most {MOST:,} requests are kept; {rate:g}/s for {seconds:g} s are more"
        raise UsageError(most, "give a shorter --time or a lower --rate")
    with opened(artifact, devices, report, threads) as library:
        if not isinstance(library, RemoteModel):
            return _served_here(library, arrivals(rate, seconds), seconds, streams)
        feeds = [inputs_that_run(library, shape, seed=0) for shape in library.interfaces]
        return library.serve(feeds, rate, seconds)


def _served_here(library: Model, coming: list[float], seconds: float, streams: int) -> Served:
    shapes, ends = range(len(library.interfaces)), span(coming, seconds)
    with (
        tempfile.NamedTemporaryFile(prefix="ansor-deploy-") as tickets,
        open_streams(library, shapes, streams) as side,
    ):
        side.prepare(streams, library.threads)
        times = side.serve(streams, library.threads, coming, ends, Path(tickets.name))
    return summed_up(times, len(coming), ends)
