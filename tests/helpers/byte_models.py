"""Models of one operator on bytes, with extreme weights."""

import numpy as np
from onnx import numpy_helper

from . import built
from .graphs import node, typed

RNG = np.random.default_rng(0)


def integers(made, weight, *data, **zeros):
    """A model of one operator on bytes, with a constant weight."""
    return typed([made], {"x": ("uint8", data)}, {"o": "int32"}, {"w": weight, **zeros})


def product(rows, depth, columns):
    """A model that multiplies rows by extreme weights."""
    return integers(node("MatMulInteger", "x w", "o"), extreme(depth, columns), rows, depth)


def assert_no_sum_saturates(rows, depth, columns, target):
    """The product of bytes, half of them 255, with extreme weights is exact."""
    proto = product(rows, depth, columns)
    x = np.where(RNG.random((rows, depth)) < 0.5, 255, RNG.integers(0, 256, (rows, depth)))
    weight = numpy_helper.to_array(proto.graph.initializer[0])
    (found,) = built.run(proto, {"x": x.astype(np.uint8)}, target)
    np.testing.assert_array_equal(found, x.astype(np.int32) @ weight.astype(np.int32))


def extreme(*shape):
    """Signed bytes, half of them -128 or 127."""
    ends = RNG.choice(np.array([-128, 127], np.int8), shape)
    return np.where(RNG.random(shape) < 0.5, ends, RNG.integers(-128, 128, shape)).astype(np.int8)
