"""Operators that take integers become what pairs of conversions become: tables and moved bytes."""

import numpy as np
import pytest
from helpers import built
from helpers.graphs import contrib, node, randn, run, typed
from onnx import TensorProto, helper

from ansor_deploy.model.canonicalize import canonicalize

RNG = np.random.default_rng(0)
KINDS = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}
CONSTANTS = {
    "xs": np.float32(0.02), "ys": np.float32(0.05), "ws": np.float32(0.01),
    "ps": np.float32(0.0437),
    # Without VNNI ONNX Runtime's sums of pairs saturate, but not those with weights of seven bits.
    "v": RNG.integers(-64, 64, (4, 3, 1, 1)).astype(np.int8),
    "m": RNG.integers(-64, 64, (6, 5)).astype(np.int8), "mz": np.int8(0),
    "vs": RNG.uniform(0.001, 0.01, 4).astype(np.float32), "vz": np.zeros(4, np.int8),
    "b": RNG.integers(-99, 99, 5).astype(np.int32),
}  # fmt: skip


def model(nodes, shape, kind=np.uint8, inputs=(), **more):
    """Nodes from "x" to "o", of constants by name; those of `inputs` come in a run."""
    constants = {**CONSTANTS, "xz": kind(100), "yz": kind(7), **more}
    used = {name for one in nodes for name in one.input} & constants.keys()
    given = {"x": (kind, shape), **dict.fromkeys(inputs, ("float32", ()))}
    known = {name: constants[name] for name in sorted(used - given.keys())}
    return typed(nodes, given, {"o": kind}, known)


def same(proto):
    """The operators that a model becomes; a library makes what ONNX Runtime does, bit for bit."""
    kind = proto.graph.input[0].type.tensor_type
    ends = np.iinfo(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    extent = [one.dim_value for one in kind.shape.dim]
    feeds = {"x": RNG.integers(ends.min, ends.max + 1, extent).astype(ends.dtype)}
    feeds |= {one.name: np.asarray(CONSTANTS[one.name]) for one in proto.graph.input[1:]}
    (wanted,), (found,) = run(proto, feeds), built.run(proto, feeds)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found, wanted)
    return [one.op_type for one in canonicalize(proto).graph.node]


IMAGE = (2, 4, 5, 3)  # channels last
GATE = [
    contrib("QLinearSigmoid", "x xs xz ws yz", "s"),
    contrib("QLinearMul", "x xs xz s ws yz ys yz", "o"),
]
POOL = {"channels_last": 1, "kernel_shape": [2, 2]}
# Of each: nodes, the shape of what they read, and what they become where that is all.
BECOMES = {
    "a table": ([contrib("QLinearSigmoid", "x xs xz ws yz", "o")], (2, 6), {"Gather"}),
    "one table": (GATE, (2, 6), {"Gather"}),
    "parts of other scales": (
        [contrib("QLinearConcat", "ys yz x xs xz x ws yz", "o", axis=1)], (2, 6), None,
    ),
    "a slope": ([contrib("QLinearLeakyRelu", "x xs xz ys yz", "o")], (2, 6), None),
    "a mean": (
        [contrib("QLinearGlobalAveragePool", "x xs xz ys yz", "o", channels_last=1)], IMAGE, None,
    ),
    "means": ([contrib("QLinearAveragePool", "x xs xz ps yz", "o", **POOL)], IMAGE, None),
    "a layer": ([contrib("QGemm", "x xs xz m ws mz b ys yz", "o")], (2, 6), None),
    "Microsoft's own conversions": (
        [
            contrib("DequantizeLinear", "x xs xz", "r"),
            contrib("DequantizeLinear", "v vs vz", "w", axis=0),
            node("Conv", "r w", "c", pads=[0, 1, 1, 1]),
            contrib("QuantizeLinear", "c ys yz", "o"),
        ],
        (1, 3, 4, 5), None,
    ),
    "a convolution": (
        [node("QLinearConv", "x xs xz v vs vz ys yz", "o", pads=[0, 1, 1, 1])], (1, 3, 4, 5), None,
    ),
    "a product": ([node("QLinearMatMul", "x xs xz m ws mz ys yz", "o")], (2, 3, 6), None),
}  # fmt: skip
FLOATS = {"QuantizeLinear", "DequantizeLinear", "Sigmoid", "Conv", "MatMul", "Transpose"}


@pytest.mark.parametrize(("nodes", "shape", "becomes"), BECOMES.values(), ids=BECOMES)
def test_an_operator_is_one_of_bytes(nodes, shape, becomes):
    found = set(same(model(nodes, shape)))
    assert becomes in (None, found)
    assert not found & (FLOATS - ({"Transpose"} if "kernel_shape" in str(nodes) else set()))


def test_signed_bytes_are_looked_up_as_well():
    found = same(model(GATE, (2, 6), np.int8))
    assert found.count("Gather") == 1
    assert "Sigmoid" not in found


def test_scales_of_a_run_are_computed_with_as_numbers():
    nodes = [
        contrib("QLinearSigmoid", "x xs xz ws yz", "s"),
        contrib("QLinearAdd", "x xs xz s ws yz ys yz", "o"),
    ]
    assert "Sigmoid" in same(model(nodes, (2, 6), inputs=("xs",)))


def test_a_product_of_two_tensors_follows_an_operator_of_another_domain():
    nodes = [
        contrib("QLinearLeakyRelu", "x xs xz ys yz", "l"),
        node("DequantizeLinear", "l ys yz", "d"), node("Transpose", "d", "t", perm=[1, 0]),
        node("MatMul", "d t", "p"), node("QuantizeLinear", "p ys yz", "o"),
    ]  # fmt: skip
    assert "MatMulInteger" in same(model(nodes, (2, 6)))


def test_weights_that_a_model_quantises_itself_are_bytes():
    nodes = [
        node("QuantizeLinear", "f vs vz", "q", axis=0),
        node("DequantizeLinear", "q vs vz", "w", axis=0),
        node("DequantizeLinear", "x xs xz", "d"), node("Conv", "d w", "c"),
        node("QuantizeLinear", "c ys yz", "o"),
    ]  # fmt: skip
    proto = model(nodes, (1, 3, 4, 5), f=randn(0, 4, 3, 1, 1) * np.float32(0.3))
    assert "ConvInteger" in same(proto)


@pytest.mark.parametrize(
    "made",
    [node("ReduceMean", "d", "r", axes=[2, 3]), node("Add", "d e", "r"), node("Mul", "d e", "r")],
    ids=lambda one: one.op_type,
)
def test_what_is_moved_before_it_is_quantised_is_computed_on_bytes(made):
    nodes = [
        node("DequantizeLinear", "x xs xz", "d"), node("DequantizeLinear", "x ws yz", "e"), made,
        node("Reshape", "r flat", "f"), node("QuantizeLinear", "f ps yz", "o"),
    ]  # fmt: skip
    found = same(model(nodes, (2, 4, 3, 3), flat=np.array([2, -1])))
    assert not {*found} & {"DequantizeLinear", "ReduceMean"}
    assert "Cast" in found


def test_a_channel_of_scale_zero_is_zero():
    scales = np.array([0, 0.01, 1e-40, 0.02], np.float32)
    nodes = [
        node("DequantizeLinear", "x xs xz", "d"),
        node("DequantizeLinear", "v dead vz", "w", axis=0),
        node("DequantizeLinear", "c sums", "e", axis=0), node("Conv", "d w e", "y"),
        node("QuantizeLinear", "y ys yz", "o"),
    ]  # fmt: skip
    given = {"c": np.array([5, -3, 70, -5], np.int32), "sums": scales * CONSTANTS["xs"]}
    assert "ConvInteger" in same(model(nodes, (1, 3, 4, 5), dead=scales, **given))


def test_steps_of_zero_are_at_the_ends():
    nodes = [node("DequantizeLinear", "x xs xz", "d"), node("QuantizeLinear", "d nil yz", "o")]
    proto = model(nodes, (4, 4), nil=np.float32(0))
    x = np.arange(90, 106, dtype=np.uint8).reshape(4, 4)
    x[x == 100] = 0  # whose quotient would be no number
    np.testing.assert_array_equal(built.run(proto, {"x": x})[0], run(proto, {"x": x})[0])


@pytest.mark.parametrize("op", ["Flatten", "Relu"])
def test_a_scale_beyond_all_numbers_of_another(op):
    """The quotient of the two is infinite, but zero stays zero."""
    nodes = [
        node("DequantizeLinear", "x far xz", "d"), node(op, "d", "f"),
        node("QuantizeLinear", "f near yz", "o"),
    ]  # fmt: skip
    same(model(nodes, (16, 16), far=np.float32(1e30), near=np.float32(1e-40)))


def test_a_product_of_scales_beyond_all_numbers_stays_one_of_numbers():
    nodes = [
        node("DequantizeLinear", "x far xz", "d"), node("Transpose", "d", "t", perm=[1, 0]),
        node("MatMul", "d t", "p"), node("QuantizeLinear", "p far yz", "o"),
    ]  # fmt: skip
    assert "MatMulInteger" not in same(model(nodes, (1, 6), far=np.float32(1e30)))


def test_what_is_empty_is_not_computed():
    nodes = [
        node("Slice", "x none none", "s"), node("DequantizeLinear", "s xs xz", "d"),
        node("Unsqueeze", "d none", "u"), node("QuantizeLinear", "u ys yz", "o"),
    ]  # fmt: skip
    same(model(nodes, (2, 6), none=np.zeros(1, np.int64)))
