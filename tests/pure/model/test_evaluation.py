"""A graph of integers in NumPy: what ONNX Runtime's operators on integers make of them."""

import numpy as np
import pytest
from helpers.graphs import node, run, typed

from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.evaluation import evaluated

RNG = np.random.default_rng(0)


def drawn(*shape, dtype=np.uint8):
    ends = np.iinfo(dtype)
    return RNG.integers(ends.min, ends.max + 1, shape).astype(dtype)


def model(one, x, constants):
    """A node from "x" to "y"."""
    made = "int32" if "Integer" in one.op_type else x.dtype
    return typed([one], {"x": x}, {"y": made}, constants)


def known(proto, x):
    return evaluated(canonical_graph(proto), {"x": x}, ["y"])


ZEROS = {"z": np.uint8(100), "v": np.int8(0)}
CONVOLUTIONS = {
    "groups": ((6, 2, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
    "one channel each": ((6, 1, 3, 2), {"group": 6, "strides": [2, 1]}),
    "taps apart": ((4, 6, 2, 2), {"dilations": [2, 3], "pads": [0, 1, 2, 0]}),
    "windows of padding alone": ((4, 6, 1, 1), {"pads": [1, 2, 2, 1], "strides": [1, 2]}),
    "as large as the strides take": ((4, 6, 3, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
}


@pytest.mark.parametrize(("shape", "how"), CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolutions(shape, how):
    x, weight = drawn(2, 6, 7, 8), drawn(*shape, dtype=np.int8)
    proto = model(node("ConvInteger", "x w z v", "y", **how), x, {"w": weight, **ZEROS})
    np.testing.assert_array_equal(known(proto, x)["y"], run(proto, {"x": x})[0])


def test_products():
    # ONNX Runtime's sums of pairs saturate without VNNI, but not those with weights of seven bits.
    x, weight = drawn(2, 5, 6), drawn(6, 4, dtype=np.int8) >> 1
    zeros = {"z": np.uint8(100), "v": drawn(4, dtype=np.int8)}
    proto = model(node("MatMulInteger", "x w z v", "y"), x, {"w": weight, **zeros})
    np.testing.assert_array_equal(known(proto, x)["y"], run(proto, {"x": x})[0])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_the_greatest_of_windows(dtype):
    x = drawn(1, 3, 8, 8, dtype=dtype)
    how = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "ceil_mode": 1}
    proto = model(node("MaxPool", "x", "y", **how), x, {})
    np.testing.assert_array_equal(known(proto, x)["y"], run(proto, {"x": x})[0])


def test_what_is_not_known_is_left_out():
    x = drawn(1, 3, 8, 8)
    graph = canonical_graph(model(node("Softmax", "x", "y"), x.astype(np.float32), {}))
    assert evaluated(graph, {"x": x.astype(np.float32)}, ["y"]) == {}
