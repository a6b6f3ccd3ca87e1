"""The part of a manifest that says what a library is used for, and how it uses the cores."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ..system.json_types import Cores, Ms


class Split(Struct, frozen=True):
    """Parallel runs of a library. threads: of each run. per_second, median_ms: measured, of runs.

    For several shapes, a run is one in each of them.
    """

    threads: Cores
    streams: Cores
    per_second: Annotated[float, Meta(ge=0)]
    median_ms: Ms


class Preset(Struct, frozen=True):
    """What a library is used for, and the split of the cores that was best for it.

    tried: all splits that were tried, the best first; none where the split comes from a lock.
    threads: how many a run takes, unless its caller says otherwise. streams: how many processes
    load the library.
    """

    name: Literal["latency", "throughput"]
    threads: Cores
    streams: Cores
    tried: tuple[Split, ...]
