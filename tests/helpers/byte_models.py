"""Models of one operator on bytes, with extreme weights."""

import numpy as np
from onnx import numpy_helper

from .graphs import node, typed
from .together import Together

RNG = np.random.default_rng(0)


def integers(made, weight, *data, **zeros):
    """A model of one operator on bytes, with a constant weight."""
    return typed([made], {"x": ("uint8", data)}, {"o": "int32"}, {"w": weight, **zeros})


def product(rows, depth, columns):
    """A model that multiplies rows by extreme weights."""
    return integers(node("MatMulInteger", "x w", "o"), extreme(depth, columns), rows, depth)


class Products:
    """Products of these rows, steps and columns, as one library."""

    def __init__(self, shapes, target):
        self._models = {shape: product(*shape) for shape in shapes}
        feeds = {(rows, depth, n): {"x": _drawn(rows, depth)} for rows, depth, n in shapes}
        self._made = Together(self._models, feeds, target)

    def assert_no_sum_saturates(self, shape):
        """The product of bytes, half of them 255, with extreme weights is exact."""
        weight = numpy_helper.to_array(self._models[shape].graph.initializer[0])
        wanted = self._made.feeds[shape]["x"].astype(np.int32) @ weight.astype(np.int32)
        np.testing.assert_array_equal(self._made.outputs(shape)[0], wanted)


def _drawn(*shape):
    return np.where(RNG.random(shape) < 0.5, 255, RNG.integers(0, 256, shape)).astype(np.uint8)


def extreme(*shape):
    """Signed bytes, half of them -128 or 127."""
    ends = RNG.choice(np.array([-128, 127], np.int8), shape)
    return np.where(RNG.random(shape) < 0.5, ends, RNG.integers(-128, 128, shape)).astype(np.int8)
