"""Inputs for a library: seeded ones, those that it runs on, and edge values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UsageError

if TYPE_CHECKING:
    from ...runtime.interface import Interface, TensorInfo
    from .verify import Runnable


def seeded_inputs(
    inputs: Sequence[TensorInfo], seed: int, upper: int = 64, least: int = 0
) -> dict[str, Any]:
    """Reproducible arrays: normal floats, integers from `least` to below `upper`, fair booleans.

    By name, each of its input's shape and dtype.
    """
    rng = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray] = {}
    for info in inputs:
        if info.dtype == "bool":
            arrays[info.name] = np.asarray(rng.random(info.shape) < 0.5)
        elif "int" in info.dtype:
            arrays[info.name] = rng.integers(least, upper, info.shape).astype(info.dtype)
        else:
            arrays[info.name] = rng.standard_normal(info.shape).astype(info.dtype)
    return arrays


def inputs_that_run(library: Runnable, interface: Interface, seed: int) -> dict[str, np.ndarray]:
    """As `seeded_inputs`, on which a library runs: its whole numbers below two, zero, or one.

    UsageError where it takes none of these for indices, or for masks.
    """
    for least, upper in ((0, 2), (0, 1)):
        inputs = seeded_inputs(interface.inputs, seed, upper, least)
        try:
            library(**inputs)
        except UsageError:
            continue
        return inputs
    inputs = seeded_inputs(interface.inputs, seed, 2, 1)
    library(**inputs)
    return inputs
