"""Race a library with another engine, an older library, or the library of the float model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..manifest import Race, read_manifest
from ..quantised import Gain
from .fresh import engine_side, fresh_turns, library_side
from .race import MOST_TURNS, race

if TYPE_CHECKING:
    from onnx import ModelProto

    from .fresh import Local

GAIN_SECONDS = 4.0  # the time of the race with the library of the float model


def race_engine(
    library: Local,
    engine: str,
    model: ModelProto,
    shape: int,
    seed: int,
    until: float,
    looks: Sequence[int] = (MOST_TURNS,),
    folder: Path | None = None,
) -> Race:
    """The race of a library with an engine of `request.ENGINES`, on as many threads.

    model: its model. shape: which of the library's shapes. seed: that of the
    inputs. until, looks: as in `race`. folder: as in `fresh_turns`. ModelError where the engine
    refuses the model, UsageError where it is not installed.
    """
    from ...model.onnx.written import write_model

    with tempfile.TemporaryDirectory(prefix="ansor-deploy-", dir=folder) as place:
        path = write_model(model, Path(place))
        sides = library_side(library), engine_side(engine, path, library.threads)
        with fresh_turns(*sides, [shape], seed, until, folder) as turns:
            return race(turns.peer, turns.take, until, looks)


def race_libraries(ours: Local, theirs: Local, name: str, until: float) -> Race:
    """The race of a library with another one that takes the same inputs, in its first shape.

    name: that of the other one. until: as in `race`.
    """
    with fresh_turns(library_side(ours), library_side(theirs), [0], 0, until) as turns:
        return race(name, turns.take, until)


def gain_of(library: Path, other: Path) -> Gain:
    """What a library of a quantised model gains over one of the float model.

    Both run on as many threads as the first one was built for.
    """
    from ...runtime.model import load

    ours = load(library)
    theirs, until = load(other, ours.threads), time.monotonic() + GAIN_SECONDS
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
