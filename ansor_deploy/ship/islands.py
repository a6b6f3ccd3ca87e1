"""Islands: places where a quantised network computes floats that may differ between processors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._tvm import tirx
from ..codegen.passes.same_bytes import may_differ
from ..model.graph.steps import steps_of

if TYPE_CHECKING:
    from ..model.graph.places import Place
    from ..model.prepare import Prepared
    from ..target import Target


def islands(model: Prepared, target: Target) -> tuple[Place, ...] | None:
    """The places that may give other bytes on another processor, tasks first, each once.

    None for a network that is not quantised: there most places would be islands.
    """
    if steps_of(model.protos[0]) is None:
        return None
    on_gpu = target.gpu is not None
    found = (places for func, places in _programs(model) if may_differ(func, on_gpu=on_gpu))
    return tuple(dict.fromkeys(one for places in found for one in places))


def _programs(model: Prepared) -> Iterator[tuple[tirx.PrimFunc, tuple[Place, ...]]]:
    """Each unscheduled program of the model, with the places where the model computes it."""
    for task in model.tasks:
        yield task.mod["main"], task.places
    for name, place in model.others:
        func = model.imported.mod[name]
        if isinstance(func, tirx.PrimFunc):
            yield func, (place,)
