"""Inputs for a library: seeded ones, and ones that it accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UsageError

if TYPE_CHECKING:
    from ...runtime.interface import Interface, TensorInfo
    from .verify import Runnable

_FAR_BELOW = 16  # its exponential, and its sigmoid, is next to nothing


def seeded_inputs(
    inputs: Sequence[TensorInfo], seed: int, upper: int = 64, least: int = 0
) -> dict[str, Any]:
    """Reproducible arrays: normal floats, integers from `least` to below `upper`, fair booleans.

    They are by name, and have their input's shape and dtype.
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
    """Seeded inputs that a library accepts: integers are tried below two, then all 0, then all 1.

    At last, floats are tried far below zero, of which a model computes fewer frames of sound.
    UsageError where it accepts none of these as indices or masks, or has no room for what it
    computes of them.
    """
    for least, upper, below in ((0, 2, 0), (0, 1, 0), (1, 2, 0), (0, 2, _FAR_BELOW)):
        inputs = seeded_inputs(interface.inputs, seed, upper, least)
        if below:
            inputs = {name: _lowered(array, below) for name, array in inputs.items()}
        try:
            library(**inputs)
        except UsageError as error:
            refused = error
            continue
        return inputs
    raise refused


def _lowered(array: np.ndarray, by: float) -> np.ndarray:
    return array - array.dtype.type(by) if np.issubdtype(array.dtype, np.floating) else array
