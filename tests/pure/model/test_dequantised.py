"""What stands for integers is summed up as integers, near what ONNX Runtime makes of floats."""

import numpy as np
import pytest
from helpers import graphs
from helpers.graphs import model, node, randn
from onnx import TensorProto

from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.evaluation import evaluated

RNG = np.random.default_rng(3)
FLOATS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}


def integers(kind, *shape):
    ends = np.iinfo(kind)
    return RNG.integers(ends.min, ends.max + 1, shape).astype(kind)


def around(nodes, shape, weights, kind="uint8", **constants):
    """A model of float nodes on x and w, whose result y is rounded to bytes.

    kind: of x. weights: their array, the axis of their scales, and how many of these there are.
    """
    weight, axis, count = weights
    scales = (RNG.random(count) * 0.01 + 0.005).astype("f")
    ends = np.iinfo(kind)
    known = {
        "s": np.float32(8 / ends.max), "z": np.array(ends.max // 3, kind), "v": weight,
        "vs": scales, "vz": integers(weight.dtype, count), "t": np.float32(0.1),
        "o": np.uint8(120), **constants,
    }  # fmt: skip
    before = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "v vs vz", "w", axis=axis),
    ]
    after = [node("QuantizeLinear", "y t o", "r"), node("DequantizeLinear", "r t o", "made")]
    return model([*before, *nodes, *after], {"x": shape}, constants=known, opset=21)


def assert_integers(proto, shape, atol=0.11, kind="float32"):
    """Nothing but integers is multiplied, and all is within a step of ONNX Runtime's."""
    feed = {"x": RNG.standard_normal(shape).astype(kind)}
    graph = canonical_graph(proto)
    assert FLOATS.isdisjoint(one.op_type for one in graph.nodes)
    (wanted,) = graphs.run(proto, feed)
    (name,) = (one.name for one in proto.graph.output)
    found = evaluated(graph, feed, [name])[name]
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)
    assert np.ptp(found) > 2


WINDOWS = {
    "whole groups": ((7,), (4,), {"strides": [2], "pads": [1, 1]}, 1),
    "one tap": ((3, 5), (2, 2), {"strides": [2, 2]}, 1),
    "from the middle": ((3, 4), (3, 3), {"strides": [2, 2], "pads": [1] * 4}, 1),
    "beyond": ((3, 4), (3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}, 2),
    "taps apart": ((2, 3), (2, 3), {"strides": [3, 4], "output_padding": [1, 2]}, 4),
    "cut": ((4, 5), (5, 4), {"strides": [2, 3], "pads": [2, 1, 1, 0]}, 1),
    "three axes": ((2, 2, 3), (2, 3, 2), {"strides": [2, 1, 2], "pads": [0, 1, 0, 0, 1, 0]}, 2),
}  # fmt: skip


@pytest.mark.parametrize(("sizes", "kernel", "window", "groups"), WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_a_transposed_convolution(sizes, kernel, window, groups, kind):
    shape = (1, 8, *sizes)
    weight = integers(kind, 8, 3, *kernel)
    nodes = [node("ConvTranspose", "d w b", "y", group=groups, **window)]
    bias = RNG.standard_normal(3 * groups).astype("f")
    assert_integers(around(nodes, shape, (weight, 1, 3), b=bias), shape)


def test_a_transposed_convolution_adds_a_bias_of_integers():
    bias = {"i": integers("int16", 6).astype("int32"), "bs": np.float32(0.0005)}
    weight, shape = integers("int8", 8, 6, 4, 4), (1, 8, 5, 5)
    nodes = [
        node("DequantizeLinear", "i bs", "b"),
        node("ConvTranspose", "d w b", "y", strides=[2, 2], pads=[1] * 4),
    ]
    assert_integers(around(nodes, shape, (weight, 1, 6), **bias), shape)


@pytest.mark.parametrize("kind", ["uint16", "int16"])
@pytest.mark.parametrize("bias", ["b", "i"])
def test_activations_of_two_bytes(kind, bias):
    """In a border of zero points."""
    weight, shape = integers("int8", 4, 60, 3, 1), (1, 60, 3, 2)
    known = {"b": np.float32([1, 2, 3, 4]), "n": np.int32([9, 8, -7, 600]), "ns": np.float32(0.01)}
    nodes = [
        node("DequantizeLinear", "n ns", "i"),
        node("Conv", f"d w {bias}", "y", pads=[1, 0, 1, 0]),
    ]
    known["vz"] = np.zeros(4, "int8")
    assert_integers(around(nodes, shape, (weight, 0, 4), kind, **known), shape)


@pytest.mark.parametrize("kind", ["uint16", "int16"])
@pytest.mark.parametrize(("times", "rounded"), [(1, 1), (2, 2)])
def test_words_that_are_moved_are_rounded_again_for_another_scale_alone(kind, times, rounded):
    most, shape = np.iinfo(kind).max, (2, 6)
    scale = np.float32(8 / most)
    known = {"s": scale, "o": scale * np.float32(times), "z": np.array(most // 3, kind)}
    nodes = [
        node("QuantizeLinear", "x s z", "a"),
        node("DequantizeLinear", "a s z", "b"),
        node("Transpose", "b", "c", perm=[1, 0]),
        node("QuantizeLinear", "c o z", "d"),
        node("DequantizeLinear", "d o z", "e"),
        node("Concat", "e e", "f", axis=1),
        node("QuantizeLinear", "f o z", "g"),
        node("DequantizeLinear", "g o z", "y"),
    ]
    proto, feed = model(nodes, {"x": shape}, constants=known, opset=21), {"x": randn(1, *shape)}
    graph = canonical_graph(proto)
    assert sum(one.op_type == "Round" for one in graph.nodes) == rounded
    np.testing.assert_array_equal(evaluated(graph, feed, ["y"])["y"], *graphs.run(proto, feed))


@pytest.mark.parametrize(("depth", "products"), [(516, "MatMulInteger"), (517, "MatMul")])
@pytest.mark.parametrize("columns", [(), (1,)])
def test_sums_of_two_bytes_have_room_in_32_bits(depth, products, columns):
    """Or are of floats: 517 products of 32768 by 127 are one too many."""
    none = {"vz": np.int8(0), "vs": np.float32(0.01), "z": np.int16(0)}
    weights = np.full((depth, *columns), 127, "int8"), 0, 1
    proto = around([node("MatMul", "d w", "y")], (2, depth), weights, "int16", **none)
    assert products in {one.op_type for one in canonical_graph(proto).nodes}


@pytest.mark.parametrize("turned", [0, 1])
def test_a_gemm_of_factors(turned):
    weight, shape = integers("int8", *((5, 12) if turned else (12, 5))), (6, 12)
    bias = RNG.standard_normal((6, 1)).astype("f")
    nodes = [node("Gemm", "d w b", "y", alpha=0.3, beta=1.7, transB=turned)]
    assert_integers(around(nodes, shape, (weight, 1 - turned, 5), b=bias), shape)


def test_a_gemm_adds_a_bias_of_integers_that_its_factor_makes_of_the_sums_scale():
    """And none at all where the factor is 0."""
    scales = {"s": np.float32(0.03), "vs": np.float32([0.01] * 3)}
    known = {**scales, "i": np.int32([900, -800, 700]), "is": np.float32([0.00015] * 3)}
    weight, shape = integers("int8", 12, 3), (4, 12)
    for beta in (0.6, 0.0):
        nodes = [
            node("DequantizeLinear", "i is", "b", axis=0),
            node("Gemm", "d w b", "y", alpha=0.3, beta=beta),
        ]
        assert_integers(around(nodes, shape, (weight, 1, 3), **known), shape)


@pytest.mark.parametrize("shape", [(12, 9), (2, 3, 12, 9)])
def test_weights_on_the_left(shape):
    weight = integers("int8", 5, 12)
    assert_integers(around([node("MatMul", "w d", "y")], shape, (weight, 0, 5)), shape)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_halves_between_integers(kind):
    """Of an input and an output of either type, and with a constant that is computed with."""
    weight, scale = integers("int8", 4, 6, 3, 3), np.float16(RNG.random(4) * 0.01 + 0.005)
    known = {
        "s": np.float16(0.03), "z": np.uint8(90), "v": weight, "vs": scale,
        "vz": np.zeros(4, "int8"), "b": np.float16([1, -2, 3, -4]), "t": np.float16(0.1),
        "o": np.uint8(120), "two": np.float16(2),
    }  # fmt: skip
    nodes = [
        node("Cast", "x", "h", to=TensorProto.FLOAT16),
        node("QuantizeLinear", "h s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "v vs vz", "w", axis=0),
        node("Conv", "d w b", "c"),
        node("Mul", "c two", "twice"),
        node("QuantizeLinear", "twice t o", "r"),
        node("DequantizeLinear", "r t o", "e"),
        node("Cast", "e", "y", to=kind),
    ]
    shape = (1, 6, 7, 5)
    proto = model(nodes, {"x": shape}, constants=known, opset=21)
    proto.graph.output[0].type.tensor_type.elem_type = kind
    assert_integers(proto, shape, 0.21)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    assert_integers(proto, shape, 0.21, "float16")


@pytest.mark.parametrize(
    ("product", "shape", "weight", "axis"),
    [
        (("Conv", {"pads": [1] * 4}), (1, 6, 7, 5), (4, 6, 3, 3), 0),
        (("MatMul", {}), (3, 6), (6, 4), 1),
        (("Gemm", {"alpha": 0.5, "transB": 1}), (3, 6), (4, 6), 0),
    ],
)
@pytest.mark.parametrize("bias", ["", " b"])
def test_activations_that_a_run_quantises(product, shape, weight, axis, bias):
    """Whoever wrote them: their scale and zero point are tensors."""
    known = {
        "v": integers("int8", *weight), "vs": (RNG.random(4) * 0.01 + 0.005).astype("f"),
        "vz": integers("int8", 4), "b": np.float32([1, -2, 3, -4]),
    }  # fmt: skip
    (op, attributes), bias = product, "" if product[0] == "MatMul" else bias
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "v vs vz", "w", axis=axis),
        node(op, f"d w{bias}", "y", **attributes),
    ]
    assert_integers(model(nodes, {"x": shape}, constants=known), shape, 1e-4)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_activations_of_two_bytes_by_weights_beyond_a_signed_byte(kind):
    """As quantisers for Qualcomm's processors write them: of one scale and any zero point."""
    weight, shape = (integers(kind, 4, 20, 3, 1), 0, 1), (1, 20, 3, 2)
    known = {"vz": np.asarray(np.iinfo(kind).max - 100, kind), "vs": np.float32(0.01)}
    nodes = [node("Conv", "d w", "y", pads=[1, 0, 1, 0])]
    assert_integers(around(nodes, shape, weight, "uint16", **known), shape)


@pytest.mark.parametrize("filters", [6, 12])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("zeros", [[100], [0, 127, 100]])
def test_channels_with_scales_of_their_own(kind, filters, zeros):
    """In front of a depthwise convolution, as NNCF quantises; zero points may differ as well."""
    weight, shape = (integers("int8", filters, 1, 3, 3), 0, filters), (1, 6, 5, 4)
    known = {"s": np.linspace(0.02, 0.05, 6, dtype="f"), "z": np.resize(zeros, 6).astype(kind)}
    nodes = [node("Conv", "d w", "y", group=6, pads=[1] * 4)]
    assert_integers(around(nodes, shape, weight, kind, **known), shape)
