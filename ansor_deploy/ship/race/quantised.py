"""A library of a quantised model beside one of the float model."""

from __future__ import annotations

import time
from pathlib import Path

from ..manifest import read_manifest
from ..quantised import Gain
from .beside import race_libraries

SECONDS = 4.0  # of turns


def gain_of(library: Path, other: Path) -> Gain:
    """What the first gains over the second, on as many threads as it was built for."""
    from ...runtime.model import load

    ours = load(library)
    theirs, until = load(other, ours.threads), time.monotonic() + SECONDS
    race = race_libraries(ours, theirs, "the float model", until)
    artifact = read_manifest(library).artifact
    return Gain(
        library=artifact.sha256,
        int8_ms=race.ours_ms,
        float_ms=race.theirs_ms,
        ratio=race.ratio,
        interval=race.interval,
        verdict=race.verdict,
        int8_bytes=artifact.bytes,
        float_bytes=other.stat().st_size,
    )
