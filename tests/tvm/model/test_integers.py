"""What stands for integers is computed on them: the same bytes as ONNX Runtime's, and no floats."""

from itertools import product

import numpy as np
import onnx
import pytest
from helpers import built, graphs
from helpers.graphs import model, node
from helpers.together import Together
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

RNG = np.random.default_rng(0)
SHAPE = (1, 8, 9, 10)


def randn(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


CONV = node("Conv", "x w", "c", pads=[1] * 4)
WEIGHTS = {"w": (12, 8, 3, 3), "w1": (12, 12, 1, 1), "m": (12, 7), "b": (12,)}
# Of each, the float operators, and how many kernels they become, with those at both ends.
NETWORKS = {
    "a bounded convolution": ([node("Conv", "x w b", "c"), node("Relu", "c", "y")], 3),
    "a residual": (
        [CONV, node("Relu", "c", "r"), node("Conv", "r w1", "d"), node("Add", "d r", "y")],
        4,
    ),
    "a gate": ([CONV, node("Sigmoid", "c", "s"), node("Mul", "c s", "y")], 3),
    "parts of other scales": (
        [CONV, node("Conv", "c w1", "d"), node("Concat", "c d", "e", axis=1),
         node("MaxPool", "e", "y", kernel_shape=[2, 2], strides=[2, 2])],
        7,
    ),
    "a mean": ([CONV, node("GlobalAveragePool", "c", "g"), node("Flatten", "g", "f"),
                node("MatMul", "f m", "y")], 5),
    "a product of activations": (
        [CONV, node("Flatten", "c", "f", axis=2), node("Transpose", "f", "t", perm=[1, 0]),
         node("MatMul", "f t", "y")],
        6,
    ),
    "depthwise": ([node("Conv", "x v", "y", group=8, pads=[1] * 4)], 3),
}  # fmt: skip


def quantised(nodes, folder, kind):
    """The operators, with conversions around each; weights of 7 bits, so that no pair saturates."""
    shapes = {**WEIGHTS, "v": (8, 1, 3, 3)}
    used = {name for one in nodes for name in one.input}
    constants = {name: 0.3 * randn(*shape) for name, shape in shapes.items() if name in used}
    onnx.save(model(nodes, {"x": SHAPE}, constants=constants), folder / "float.onnx")
    given = {"activation_type": kind, "weight_type": QuantType.QInt8, "per_channel": True}
    given |= {"quant_format": QuantFormat.QDQ, "reduce_range": True}
    quantize_static(
        folder / "float.onnx",
        folder / "made.onnx",
        graphs.Calibration({"x": randn(*SHAPE)} for _ in range(2)),
        **given,
    )
    return onnx.load(folder / "made.onnx")


# Networks, and the types of their activations.
MODELS = list(product(NETWORKS, ["QUInt8", "QInt8"]))


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quantised")
    return {
        (name, kind): quantised(NETWORKS[name][0], folder, QuantType[kind]) for name, kind in MODELS
    }


@pytest.fixture(scope="module")
def together(networks):
    return Together(networks)


@pytest.mark.parametrize("name", MODELS, ids=": ".join)
def test_bytes_are_those_of_the_oracle(name, together):
    (found,), (wanted,) = together.outputs(name), together.expected(name)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", MODELS, ids=": ".join)
def test_no_product_is_of_floats(name, networks):
    made = canonicalize(networks[name])
    assert not {one.op_type for one in made.graph.node} & {"Conv", "MatMul", "Gemm", "Sigmoid"}


@pytest.mark.parametrize("name", NETWORKS)
def test_conversions_are_part_of_kernels(name, networks):
    kernels = built.count_ops(networks[name, "QUInt8"])
    assert sum(kernels.values()) <= NETWORKS[name][1], kernels


@pytest.mark.parametrize(("channels", "size", "step"), [(17, 3, 1), (40, 5, 2), (72, 3, 2)])
def test_channels_that_do_not_fill_vectors_are_summed_up_alone(channels, size, step):
    window = {"group": channels, "pads": [size // 2] * 4, "strides": [step] * 2}
    draw = np.random.default_rng(0).integers
    x = draw(0, 256, (1, channels, 13, 11), np.uint8)
    w = draw(-128, 128, (channels, 1, size, size), np.int8)
    proto = model(
        [node("ConvInteger", "x w z", "y", **window)],
        {"x": x.shape},
        constants={"w": w, "z": np.uint8(7)},
        dtype=TensorProto.UINT8,
    )
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    (have,) = built.run(proto, {"x": x})
    half = size // 2
    padded = np.pad(x.astype(np.int32) - 7, [(0, 0), (0, 0), (half, half), (half, half)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))
    wanted = np.einsum("nchwij,cij->nchw", windows[:, :, ::step, ::step], w[:, 0].astype(np.int32))
    np.testing.assert_array_equal(have, wanted)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize(("filters", "size"), [(48, 3), (20, 3), (96, 1)])
def test_channels_with_zero_points_of_their_own_are_summed_up(kind, filters, size):
    channels = min(filters, 48)
    nodes = [
        node("DequantizeLinear", "x s z", "d", axis=1),
        node("DequantizeLinear", "w ws wz", "e", axis=0),
        node("Conv", "d e", "c", group=channels, pads=[size // 2] * 4),
        node("QuantizeLinear", "c ys yz", "y"),
    ]
    draw = np.random.default_rng(0).integers
    constants = {
        "s": np.linspace(0.02, 0.05, channels, dtype="f"),
        "z": draw(0, 128, channels).astype(kind),
        "w": draw(-127, 128, (filters, 1, size, size), np.int8),
        "ws": np.linspace(0.01, 0.02, filters, dtype="f"), "wz": np.zeros(filters, np.int8),
        "ys": np.float32(0.3), "yz": kind(9),
    }  # fmt: skip
    dtype = TensorProto.UINT8 if kind is np.uint8 else TensorProto.INT8
    shape = (1, channels, 9, 10)
    built.assert_like_oracle(model(nodes, {"x": shape}, constants=constants, dtype=dtype))


def test_bytes_held_to_a_bound_are_part_of_the_kernel_that_makes_them():
    """As a Relu behind a convolution in a network of signed, symmetric activations."""
    nodes = [
        node("DequantizeLinear", "x s z", "d"),
        node("DequantizeLinear", "w ws", "e", axis=0),
        node("Conv", "d e", "c"),
        node("QuantizeLinear", "c s z", "q"),
        node("DequantizeLinear", "q s z", "r"),
        node("Relu", "r", "p"),
        node("QuantizeLinear", "p s z", "u"),
        node("DequantizeLinear", "u s z", "v"),
        node("Conv", "v e", "y"),
    ]
    weights = {"w": np.ones((8, 8, 1, 1), np.int8), "ws": randn(8) ** 2 + 1}
    known = {"s": np.float32(0.1), "z": np.int8(0), **weights}
    proto = model([node("QuantizeLinear", "f s z", "x"), *nodes], {"f": SHAPE}, constants=known)
    assert sum(built.count_ops(proto).values()) <= 4


def test_conversions_are_part_of_the_kernels_of_sequences():
    """A convolution along one axis writes the bytes that the next one reads."""
    nodes = [
        node("DequantizeLinear", "w ws", "e", axis=0),
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("Conv", "d e", "c", pads=[1, 1]),
        node("Relu", "c", "r"),
        node("QuantizeLinear", "r s z", "u"),
        node("DequantizeLinear", "u s z", "v"),
        node("Conv", "v e", "y", pads=[1, 1]),
    ]
    weights = {"w": np.ones((8, 8, 3), np.int8), "ws": randn(8) ** 2 + 1}
    known = {"s": np.float32(0.1), "z": np.uint8(9), **weights}
    kernels = built.count_ops(model(nodes, {"x": (1, 8, 30)}, constants=known))
    assert sum(kernels.values()) <= 4, kernels


def test_a_product_by_transposed_weights_is_of_bytes():
    """As PyTorch exports a Linear: a scale for each row of a weight that is then transposed."""
    nodes = [
        node("DequantizeLinear", "x s z", "d"),
        node("DequantizeLinear", "w ws wz", "e", axis=0),
        node("Transpose", "e", "t", perm=[1, 0]),
        node("MatMul", "d t", "y"),
    ]
    weights = {"w": np.ones((3, 6), np.int8), "ws": randn(3) ** 2 + 1, "wz": np.zeros(3, np.int8)}
    known = {"s": np.float32(0.1), "z": np.uint8(3), **weights}
    graph = canonicalize(pairs(nodes, known, "y")).graph
    assert "MatMul" not in {one.op_type for one in graph.node}


@pytest.mark.parametrize("sign", ["", "U"])
def test_weights_of_four_bits_are_summed_up_as_bytes(sign):
    short, wide = (of_weights(TensorProto.DataType.Value(f"{sign}INT{n}")) for n in (4, 8))
    assert "Conv" not in {one.op_type for one in canonicalize(short).graph.node}
    feeds = {"x": 8 * randn(*SHAPE)}
    (found,), (wanted,) = built.run(short, feeds), graphs.run(wide, feeds)
    np.testing.assert_array_equal(found, wanted)


def of_weights(kind):
    """A convolution between conversions, of weights from 0 to 7."""
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w ws wz", "e", axis=0),
        node("Conv", "d e", "c"),
        node("QuantizeLinear", "c s z", "r"),
        node("DequantizeLinear", "r s z", "y"),
    ]
    known = {
        "s": np.float32(0.25),
        "z": np.uint8(120),
        "ws": np.linspace(0.1007, 0.4, 12, dtype="f"),
    }
    proto = model(nodes, {"x": SHAPE}, constants=known, opset=21)
    for name, shape in (("w", (12, 8, 1, 1)), ("wz", (12,))):
        numbers = np.arange(np.prod(shape)) % 8
        proto.graph.initializer.append(helper.make_tensor(name, kind, shape, numbers))
    return proto


def pairs(nodes, constants, made):
    """A model of nodes that are written here, of bytes x and y."""
    given = dict.fromkeys("xy", ("uint8", (2, 6)))
    return graphs.typed(nodes, given, {made: "float32"}, constants)


def test_a_function_of_one_tensor_is_a_table():
    """Through other scales, and with numbers: the steps of the definition, in float32."""
    scales = {"s": np.float32(0.05), "t": np.float32(0.031), "three": np.float32(3)}
    constants = {**scales, "z": np.uint8(128), "u": np.uint8(9)}
    nodes = [
        node("DequantizeLinear", "x s z", "r"), node("Tanh", "r", "a"), node("Mul", "a three", "b"),
        node("QuantizeLinear", "b t u", "q"), node("DequantizeLinear", "q t u", "d"),
        node("Mul", "d r", "e"), node("QuantizeLinear", "e t u", "p"),
        node("DequantizeLinear", "p t u", "o"),
    ]  # fmt: skip
    proto = pairs(nodes, constants, "o")
    x = np.arange(244, 256, dtype=np.uint8).reshape(2, 6)
    looked_up = [one for one in canonicalize(proto).graph.node if one.op_type == "Gather"]
    assert len(looked_up) == 1
    (found,) = built.run(proto, {"x": x, "y": x})
    real = (x.astype(np.float32) - 128) * np.float32(0.05)
    inner = np.rint(np.tanh(real) * np.float32(3) / np.float32(0.031)).clip(-9, 246)
    outer = np.rint(inner * np.float32(0.031) * real / np.float32(0.031)).clip(-9, 246)
    np.testing.assert_array_equal(found, outer.astype(np.float32) * np.float32(0.031))


@pytest.mark.parametrize(
    ("level", "size", "apart"), [("v3", 24, True), ("v3", 8, False), ("v4", 24, False)]
)
def test_a_large_tensor_is_looked_up_alone_where_registers_are_few(level, size, apart):
    constants = {
        "s": np.float32(0.05), "z": np.uint8(128), "ws": np.float32(0.01), "wz": np.int8(0),
        "w": RNG.integers(-127, 128, (16, 8, 1, 1)).astype(np.int8),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", "x s z", "r"), node("DequantizeLinear", "w ws wz", "v"),
        node("Conv", "r v", "c"), node("QuantizeLinear", "c s z", "q"),
        node("DequantizeLinear", "q s z", "d"), node("Sigmoid", "d", "e"),
        node("QuantizeLinear", "e s z", "y"),
    ]  # fmt: skip
    proto = graphs.typed(nodes, {"x": ("uint8", (1, 8, size, size))}, {"y": "uint8"}, constants)
    target = load_target(f"x86-64-{level}", [shipped("targets")])
    names = [name.name_hint for name in built.imported(proto, target).mod.functions]
    assert any(name.startswith("table") for name in names) == apart


def test_what_is_not_known_stays_as_it_is():
    """A scale that a run computes, and a product with it."""
    nodes = [
        node("DynamicQuantizeLinear", "f", "q s z"), node("DequantizeLinear", "q s z", "r"),
        node("MatMul", "r w", "o"),
    ]  # fmt: skip
    weight = randn(6, 4)
    nodes = [node("Cast", "x", "f", to=TensorProto.FLOAT), *nodes]
    proto = pairs(nodes, {"w": weight}, "o")
    x = RNG.integers(0, 256, (2, 6)).astype(np.uint8)
    (found,), (wanted,) = (run(proto, {"x": x, "y": x}) for run in (built.run, graphs.run))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-3)
