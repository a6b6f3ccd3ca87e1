"""What is added to sums of bytes is one constant, in the type of the sums where that is exact."""

import numpy as np
import pytest
from helpers import built, graphs
from helpers.graphs import node

RNG = np.random.default_rng(0)
DENSE, DEPTHWISE = (16, 8, 3, 3), (8, 1, 3, 3)


def layer(shape, bias):
    """A convolution of bytes around a zero point of 7, with a bias, as bytes again."""
    wide = shape[1] > 1
    constants = {
        "xs": np.float32(0.02), "xz": np.uint8(7), "ws": np.float32(0.01), "wz": np.int8(0),
        "w": RNG.integers(-99, 99, shape).astype(np.int8), "ys": np.float32(0.5),
        "yz": np.uint8(128), "b": np.full(shape[0], bias, np.int32), "bz": np.int32(0),
        "bs": np.float32(0.02) * np.float32(0.01),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", "x xs xz", "xf"),
        node("DequantizeLinear", "w ws wz", "wf"),
        node("DequantizeLinear", "b bs bz", "bf"),
        node("Conv", "xf wf bf", "c", group=1 if wide else shape[0], pads=[1] * 4),
        node("QuantizeLinear", "c ys yz", "y"),
    ]
    return graphs.typed(nodes, {"x": ("uint8", (1, 8, 6, 5))}, {"y": "uint8"}, constants)


@pytest.mark.parametrize(
    ("shape", "bias", "left_out"),
    [
        (DENSE, 400, {"subtract"}),
        (DEPTHWISE, 400, {"subtract", "cast_add"}),
        (DEPTHWISE, 1 << 24, {"subtract"}),
    ],
    ids=["sums of integers", "sums of float32", "too large for float32"],
)
def test_what_is_added_is_one_constant(shape, bias, left_out):
    proto = layer(shape, bias)
    names = " ".join(built.count_ops(proto)).split("round")[0]
    assert "add" in names
    assert not [name for name in left_out if name in names], names
    feeds = {"x": RNG.integers(0, 256, (1, 8, 6, 5)).astype(np.uint8)}
    (found,), (wanted,) = built.run(proto, feeds), graphs.run(proto, feeds)
    np.testing.assert_array_equal(found, wanted)
