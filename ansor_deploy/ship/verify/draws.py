"""Inputs for a library: seeded ones, those that it runs on, and edge values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UsageError

if TYPE_CHECKING:
    from ...runtime.model import Interface, TensorInfo
    from .verify import Runnable


def seeded_inputs(inputs: Sequence[TensorInfo], seed: int, upper: int = 64) -> dict[str, Any]:
    """Reproducible arrays: standard normal floats, integers below `upper`, fair booleans.

    By name, each of its input's shape and dtype.
    """
    rng = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray] = {}
    for info in inputs:
        if info.dtype == "bool":
            arrays[info.name] = np.asarray(rng.random(info.shape) < 0.5)
        elif "int" in info.dtype:
            arrays[info.name] = rng.integers(0, upper, info.shape).astype(info.dtype)
        else:
            arrays[info.name] = rng.standard_normal(info.shape).astype(info.dtype)
    return arrays


def inputs_that_run(library: Runnable, interface: Interface, seed: int) -> dict[str, np.ndarray]:
    """As `seeded_inputs`, on which a library runs: its whole numbers below two, or zero.

    UsageError where it takes none of these for indices.
    """
    inputs = seeded_inputs(interface.inputs, seed, upper=2)
    try:
        library(**inputs)
    except UsageError:
        inputs = seeded_inputs(interface.inputs, seed, upper=1)
        library(**inputs)
    return inputs
