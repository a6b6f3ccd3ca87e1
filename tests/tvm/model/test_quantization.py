"""Quantised operators give the numbers of ONNX Runtime, to the last step."""

import numpy as np
import pytest
from helpers import built, graphs
from helpers.graphs import node
from helpers.together import Together
from onnx import TensorProto, helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize

RNG = np.random.default_rng(0)
SCALES = {"xs": np.float32(0.02), "ys": np.float32(0.05), "zs": np.float32(0.04)}
ZEROS = {"xz": np.uint8(120), "yz": np.uint8(7), "zz": np.uint8(130)}
X = RNG.integers(0, 256, (2, 8, 6, 6)).astype(np.uint8)
Y = RNG.integers(0, 256, (2, 8, 6, 6)).astype(np.uint8)
# Without VNNI ONNX Runtime's sums of pairs saturate, but not those with weights of seven bits.
WEIGHT = RNG.integers(-64, 64, (12, 8, 3, 3)).astype(np.int8)
MATRIX = RNG.integers(-64, 64, (6, 10)).astype(np.int8)


def contrib(op, inputs, **attributes):
    return graphs.contrib(op, inputs, "o", **attributes)


def model(nodes, feeds, constants, kind, opset=13):
    """Nodes that make "o"; feeds: the inputs' values; kind: its element type."""
    return graphs.typed(nodes, feeds, {"o": kind}, constants, opset)


def assert_equal(made, feeds, constants, kind=TensorProto.UINT8):
    read = {name: value for name, value in constants.items() if name in made.input}
    proto = model([made], feeds, read, kind)
    want, have = graphs.run(proto, feeds)[0], built.run(proto, feeds)[0]
    assert (have.dtype, have.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(have, want)


COMMON = {**SCALES, **ZEROS, "w": WEIGHT, "wz": np.int8(3), "m": MATRIX,
          "ws": RNG.uniform(0.001, 0.01, 12).astype(np.float32), "wz12": np.zeros(12, np.int8),
          "b": RNG.integers(-999, 999, 12).astype(np.int32),
          "ms": RNG.uniform(0.001, 0.01, 10).astype(np.float32), "mz": np.zeros(10, np.int8),
          "ms1": np.float32(0.0437)}  # fmt: skip
ONE = {"x": X}
TWO = {"x": X, "y": Y}


BYTES, SUMS = TensorProto.UINT8, TensorProto.INT32
# Operators, their inputs, and the type of the result.
OPERATORS = {
    "QLinearConv": (
        node("QLinearConv", "x xs xz w ws wz12 ys yz b", "o", pads=[1, 1, 1, 1]), ONE, BYTES
    ),
    "QLinearConv in steps": (
        node("QLinearConv", "x xs xz w ys wz ys yz", "o", strides=[2, 2]), ONE, BYTES
    ),
    "QLinearMatMul": (node("QLinearMatMul", "x xs xz m ms mz ys yz", "o"), ONE, BYTES),
    "QLinearAdd": (contrib("QLinearAdd", "x xs xz y ys yz zs zz"), TWO, BYTES),
    "QLinearMul": (contrib("QLinearMul", "x xs xz y ys yz zs zz"), TWO, BYTES),
    "QLinearGlobalAveragePool": (
        contrib("QLinearGlobalAveragePool", "x xs xz ys yz"), ONE, BYTES
    ),
    "QLinearAveragePool": (
        contrib("QLinearAveragePool", "x xs xz ms1 yz", kernel_shape=[2, 2]), ONE, BYTES
    ),
    "QLinearSigmoid": (contrib("QLinearSigmoid", "x xs xz zs zz"), ONE, BYTES),
    "QLinearLeakyRelu": (contrib("QLinearLeakyRelu", "x xs xz zs zz", alpha=0.1), ONE, BYTES),
    "QLinearConcat": (contrib("QLinearConcat", "zs zz x xs xz y ys yz", axis=1), TWO, BYTES),
    **{
        f"QLinearSoftmax of {opset} along {axis}": (
            contrib("QLinearSoftmax", "x xs xz zs zz", axis=axis, opset=opset), ONE, BYTES
        )
        for axis, opset in ((3, 13), (1, 13), (1, 12))
    },
    "ConvInteger": (node("ConvInteger", "x w xz wz", "o", pads=[1, 1, 1, 1]), ONE, SUMS),
    "MatMulInteger": (node("MatMulInteger", "x m xz mz", "o"), ONE, SUMS),
    "MatMulIntegerToFloat": (
        contrib("MatMulIntegerToFloat", "x m xs ms xz mz"), ONE, TensorProto.FLOAT
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def operators():
    models = {
        name: model([made], feeds, {n: v for n, v in COMMON.items() if n in made.input}, kind)
        for name, (made, feeds, kind) in OPERATORS.items()
    }
    return Together(models, {name: feeds for name, (_, feeds, _) in OPERATORS.items()})


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_in_steps_of_a_scale(name, operators):
    (have,), (want,) = operators.outputs(name), operators.expected(name)
    assert (have.dtype, have.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(have, want)


def test_products_of_16_bits():
    draw = np.random.default_rng(0).integers
    feeds, w = {"x": draw(-999, 999, (4, 40), np.int16)}, draw(-999, 999, (40, 24), np.int16)
    nodes = [contrib("MatMulInteger16", "x w")]
    proto = model(nodes, feeds, {"w": w}, TensorProto.INT32)
    (have,) = built.run(proto, feeds)
    np.testing.assert_array_equal(have, feeds["x"].astype(np.int32) @ w.astype(np.int32))


def test_scales_that_fit_no_axis_are_refused_by_the_name_of_their_node():
    constants = {"w": np.zeros((6, 4), np.int8), "s": np.ones((3, 2), np.float32)}
    dequantised = node("DequantizeLinear", "w s", "d", axis=1)
    proto = model(
        [dequantised, node("MatMul", "x d", "o")],
        {"x": np.zeros((2, 6), "f")},
        constants,
        TensorProto.FLOAT,
    )
    with pytest.raises(ModelError, match=r"scales of shape \[3, 2\] fit no tensor"):
        canonicalize(proto)


def test_sum_beyond_what_float32_holds():
    """4096 products of 255 * 127 need 27 bits."""
    feeds = {"x": np.full((1, 4096), 255, np.uint8) - np.arange(4096, dtype=np.uint8) % 2}
    constants = {"m": np.full((4096, 8), 127, np.int8)}
    proto = model([node("MatMulInteger", "x m", "o")], feeds, constants, TensorProto.INT32)
    exact = feeds["x"].astype(np.int32) @ constants["m"].astype(np.int32)
    np.testing.assert_array_equal(built.run(proto, feeds)[0], exact)


def test_quantised_fully_connected_layer():
    feeds = {"x": RNG.integers(0, 256, (4, 16)).astype(np.uint8)}
    constants = COMMON | {"w": RNG.integers(-64, 64, (12, 16)).astype(np.int8)}
    made = contrib("QGemm", "x xs xz w ws wz12 b ys yz", transB=1, alpha=1.0)
    assert_equal(made, feeds, constants)


def test_matrix_that_is_quantised_when_it_comes():
    feeds = {"x": RNG.standard_normal((4, 6)).astype(np.float32)}
    made = contrib("DynamicQuantizeMatMul", "x m ms mz")
    proto = model([made], feeds, {k: COMMON[k] for k in ("m", "ms", "mz")}, TensorProto.FLOAT)
    want, have = graphs.run(proto, feeds)[0], built.run(proto, feeds)[0]
    np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8])
def test_blocks_of_weights(kind):
    values = np.arange(48) % (8 if kind == TensorProto.INT4 else 16)
    zeros = np.arange(12) % 8
    made = {"w": ((8, 6), values), "z": ((2, 6), zeros)}
    nodes = [node("DequantizeLinear", "w s z", "d", axis=0, block_size=4)]
    nodes.append(node("MatMul", "x d", "o"))
    feeds = {"x": graphs.randn(0, 3, 8)}
    proto = model(nodes, feeds, {"s": graphs.randn(1, 2, 6)}, TensorProto.FLOAT, 21)
    proto.ir_version = 10
    for name, (shape, numbers) in made.items():
        proto.graph.initializer.append(helper.make_tensor(name, kind, shape, numbers))
    want = graphs.run(proto, feeds)[0]
    np.testing.assert_allclose(built.run(proto, feeds)[0], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
def test_weights_of_small_floats(kind):
    """With a scale for each column."""
    nodes = [node("DequantizeLinear", "w s z", "d", axis=1), node("MatMul", "x d", "o")]
    feeds = {"x": graphs.randn(0, 3, 8)}
    proto = model(nodes, feeds, {"s": graphs.randn(1, 6)}, TensorProto.FLOAT, 21)
    for name, numbers in (("w", graphs.randn(2, 8, 6)), ("z", np.zeros(6))):
        made = helper.make_tensor(name, kind, numbers.shape, numbers.reshape(-1))
        proto.graph.initializer.append(made)
    want = graphs.run(proto, feeds)[0]
    np.testing.assert_allclose(built.run(proto, feeds)[0], want, rtol=1e-5, atol=1e-5)


def test_four_bits_from_float_and_back():
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "o")]
    feeds = {"x": 8 * graphs.randn(0, 64)}
    proto = model(nodes, feeds, {"s": np.float32(0.7)}, TensorProto.FLOAT, 21)
    proto.ir_version = 10
    proto.graph.initializer.append(helper.make_tensor("z", TensorProto.UINT4, (), [3]))
    np.testing.assert_array_equal(built.run(proto, feeds)[0], graphs.run(proto, feeds)[0])


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.FLOAT8E4M3FN])
def test_output_of_a_type_that_is_not_stored_is_refused_by_name(kind):
    feeds = {"x": graphs.randn(0, 4)}
    proto = model([node("QuantizeLinear", "x s z", "o")], feeds, {"s": np.float32(1)}, kind, 21)
    proto.graph.initializer.append(helper.make_tensor("z", kind, (), [0]))
    with pytest.raises(ModelError, match=r"QuantizeLinear.*(int4|float8e4m3fn)"):
        built.run(proto, feeds)
