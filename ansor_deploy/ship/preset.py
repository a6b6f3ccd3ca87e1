"""What a library is used for, as its manifest says it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ..system.json_types import Cores, Ms


class Split(Struct, frozen=True):
    """Runs of a library side by side. threads: of each. per_second, median_ms: of runs, as timed.

    A run of several shapes is one in each.
    """

    threads: Cores
    streams: Cores
    per_second: Annotated[float, Meta(ge=0)]
    median_ms: Ms


class Preset(Struct, frozen=True):
    """What a library is used for, and the split that was best for it.

    tried: all, the best first; none where a lock says the split.
    threads: that a run takes unless its caller says otherwise. streams: processes that each load
    it.
    """

    name: Literal["latency", "throughput"]
    threads: Cores
    streams: Cores
    tried: tuple[Split, ...]
