"""Inputs for a library: seeded ones, and ones that it accepts."""

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

    UsageError where it accepts none of these as indices or masks.
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
