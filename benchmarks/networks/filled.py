"""ONNX files without weights: each weight is replaced by random numbers of its mean and spread.

Such a file has a property `stripped_weights`: for each weight its type, shape, mean, spread and
minimum, as JSON. Weights that were never negative, such as variances, stay so.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

PROPERTY = "stripped_weights"


def load(path: Path, seed: int = 0) -> onnx.ModelProto:
    """A file's model with its weights, and seeded ones in place of those that it lacks."""
    model = onnx.load(path)
    for told in [one for one in model.metadata_props if one.key == PROPERTY]:
        model.graph.initializer.extend(
            numpy_helper.from_array(_weight(seed, name, *what), name)
            for name, what in json.loads(told.value).items()
        )
        model.metadata_props.remove(told)
    return model


def _weight(
    seed: int, name: str, dtype: str, shape: list[int], mean: float, spread: float, least: float
) -> np.ndarray:
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    values = mean + spread * random.standard_normal(shape)
    return np.asarray(np.abs(values) if least >= 0 else values).astype(dtype)
