"""Models of one operator on bytes, of weights that go as far as bytes can."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .graphs import node

RNG = np.random.default_rng(0)


def integers(made, weight, *data, **zeros):
    """A model of one operator on bytes, of a constant weight."""
    constants = {"w": weight, **zeros}
    proto = helper.make_graph(
        [made],
        "integers",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, data)],
        [helper.make_tensor_value_info("o", TensorProto.INT32, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def product(rows, depth, columns):
    """A model that multiplies rows by extreme weights."""
    return integers(node("MatMulInteger", "x w", "o"), extreme(depth, columns), rows, depth)


def extreme(*shape):
    """Signed bytes, half of them the least or the greatest."""
    ends = RNG.choice(np.array([-128, 127], np.int8), shape)
    return np.where(RNG.random(shape) < 0.5, ends, RNG.integers(-128, 128, shape)).astype(np.int8)
