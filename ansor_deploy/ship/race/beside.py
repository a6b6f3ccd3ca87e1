"""How fast is a library beside another engine, or an older library of its model?"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..manifest import Race
from .fresh import engine_side, fresh_turns, library_side
from .race import MOST_TURNS, race

if TYPE_CHECKING:
    from .fresh import Local


def race_engine(
    library: Local,
    engine: str,
    model: bytes,
    shape: int,
    seed: int,
    until: float,
    looks: Sequence[int] = (MOST_TURNS,),
    folder: Path | None = None,
) -> Race:
    """A library beside an engine of `request.ENGINES`, on as many threads.

    model: what is in the file of its model. shape: which of the library's. seed: of the inputs.
    until, looks: as of `race`. folder: as of `fresh_turns`. ModelError where the engine refuses the
    model, UsageError where it is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-", dir=folder) as place:
        path = Path(place, "model.onnx")
        path.write_bytes(model)
        sides = library_side(library), engine_side(engine, path, library.threads)
        with fresh_turns(*sides, [shape], seed, until, folder) as turns:
            return race(turns.peer, turns.take, until, looks)


def race_libraries(ours: Local, theirs: Local, name: str, until: float) -> Race:
    """A library beside another one that takes the same inputs, in the first of its shapes.

    name: of the other one. until: as of `race`.
    """
    with fresh_turns(library_side(ours), library_side(theirs), [0], 0, until) as turns:
        return race(name, turns.take, until)
