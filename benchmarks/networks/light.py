"""The light models of the package onnx, which have the structure of well-known networks.

Their weights are nodes that fill a shape with one value. Here each gets random values: matrices and
filters are normal and He-scaled; everything else is uniform in [0.5, 1.5), so that scales and
variances are valid.
"""

from __future__ import annotations

import copy
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("light_*.onnx")))


def load(name: str, seed: int = 0) -> onnx.ModelProto:
    """A light model, by the name of its file, with weights."""
    model = onnx.load(FOLDER / f"{name}.onnx")
    graph, rng = model.graph, np.random.default_rng(seed)
    shapes = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    filled = [node for node in graph.node if _fills(node, shapes)]
    weights = [_random(rng, shapes[node.input[0]], node.output[0]) for node in filled]
    kept = [node for node in graph.node if not _fills(node, shapes)]
    read = {name for node in kept for name in node.input}
    initial = [one for one in graph.initializer if one.name in read]
    for field, values in (
        (graph.node, kept),
        (graph.initializer, [*initial, *weights]),
        (graph.input, [one for one in graph.input if one.name in read - set(shapes)]),
    ):
        copies = copy.deepcopy(values)
        del field[:]
        field.extend(copies)
    model.ir_version = 8  # before 4, every initializer had to be an input
    return model


def _fills(node: onnx.NodeProto, shapes: dict[str, np.ndarray]) -> bool:
    return node.op_type == "ConstantOfShape" and node.input[0] in shapes


def _random(rng: np.random.Generator, shape: np.ndarray, name: str) -> onnx.TensorProto:
    size = tuple(int(extent) for extent in shape)
    if len(size) > 1:
        values = rng.standard_normal(size, "float32") * np.float32((2 / prod(size[1:])) ** 0.5)
    else:
        values = rng.random(size, "float32") + np.float32(0.5)
    return numpy_helper.from_array(values, name)
