"""A candidate on a processor, as a library that TVM's runtime loads."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime import cpu_pinning, native
from ..system.host import ask_for_matrices
from ..system.limits import limit_memory
from . import cold_weights
from .cold_weights import Block
from .guarded import Guarded, poison_workspaces

__all__ = ["Block", "Guarded", "limit", "load", "poison", "second", "times"]

# Set on import, before a worker's first call. LocalSite and the agent set the variable.
ask_for_matrices()
cpu_pinning.use_cores(int(os.environ.get("TVM_NUM_THREADS", "0")) or 1)


def load(path: str | Path) -> Any:
    """The library of a candidate."""
    return native.load_module(path)


def limit(size: int) -> None:
    """From now on, limit memory to tensors of `size` bytes and what a run needs beside them."""
    limit_memory(size)


def second(array: np.ndarray) -> Any:
    """A tensor with a copy of the values."""
    return native.tensor(array)


def poison(_library: Any) -> None:
    """Fill the memory of a call's temporary buffers."""
    poison_workspaces()


def times(
    library: Any, arguments: Sequence[Any], cold: Sequence[Sequence[Any]], number: int, repeat: int
) -> list[float]:
    """Seconds a call of `compute`, averaged over `number` calls, `repeat` times.

    cold: the arguments of the calls, if they differ from call to call.
    """
    if cold:
        return cold_weights.times(library["compute"], cold, number, repeat)
    return native.times(library, "compute", arguments, number, repeat)
