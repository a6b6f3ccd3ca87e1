"""Batch norms, scales and offsets end in the weights before them, to the last channel."""

import numpy as np
import pytest
from helpers.graphs import assert_same, batch_norm, model, node, ops, randn
from onnx import TensorProto, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize

BN = "n.s n.b n.m n.v"


def check(proto, want, tolerance=1e-5):
    after = canonicalize(proto)
    assert ops(after) == want
    assert_same(proto, after, tolerance)
    return after


def layer_and_norm(op, weight, data, channels, bias=True, **attributes):
    """A layer and the batch norm that follows it."""
    nodes = [
        node(op, "x w b" if bias else "x w", "c", **attributes),
        node("BatchNormalization", f"c {BN}", "y", epsilon=1e-3),
    ]
    constants = {"w": randn(1, *weight), "b": randn(2, channels), **batch_norm("n", channels)}
    return model(nodes, {"x": data}, constants=constants)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("weight", "data", "group"),
    [
        ((6, 4, 3), (2, 4, 9), 1),
        ((6, 4, 3, 3), (2, 4, 9, 9), 1),
        ((6, 2, 3, 3), (1, 4, 9, 9), 2),
        ((4, 1, 3, 3), (1, 4, 9, 9), 4),
        ((6, 4, 3, 3, 3), (1, 4, 5, 5, 5), 1),
    ],
    ids=["1d", "2d", "grouped", "depthwise", "3d"],
)
def test_convolutions(weight, data, group, bias):
    check(layer_and_norm("Conv", weight, data, weight[0], bias, group=group), ["Conv"])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("weight", "data", "group"),
    [
        ((4, 6, 3), (1, 4, 5), 1),
        ((4, 6, 4, 4), (1, 4, 5, 5), 1),
        ((4, 3, 4, 4), (1, 4, 5, 5), 2),
        ((4, 6, 2, 2, 2), (1, 4, 3, 3, 3), 1),
    ],
    ids=["1d", "2d", "grouped", "3d"],
)
def test_transposed_convolutions(weight, data, group, bias):
    channels = weight[1] * group
    proto = layer_and_norm("ConvTranspose", weight, data, channels, bias, group=group)
    check(proto, ["ConvTranspose"])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("weight", "attributes"),
    [((5, 7), {}), ((7, 5), {"transB": 1}), ((5, 7), {"alpha": 0.5, "beta": 2.0})],
    ids=["plain", "transposed", "scaled"],
)
def test_dense_layers(weight, attributes, bias):
    check(layer_and_norm("Gemm", weight, (3, 5), 7, bias, **attributes), ["Gemm"])


@pytest.mark.parametrize("shape", [(), (1,), (1, 7), (3, 7), (3, 1)])
def test_dense_layers_with_every_shape_of_bias(shape):
    nodes = [node("Gemm", "x w b", "c"), node("BatchNormalization", f"c {BN}", "y")]
    constants = {"w": randn(1, 5, 7), "b": randn(2, *shape), **batch_norm("n", 7)}
    per_row = len(shape) == 2 and shape[0] == 3
    want = ["Gemm", "Mul", "Add"] if per_row else ["Gemm"]
    check(model(nodes, {"x": (3, 5)}, constants=constants), want)


def test_a_whole_row_folds():
    """Batch norm, then a Caffe Scale as Mul and Add of unsqueezed vectors, then Div and Sub."""
    nodes = [
        node("Conv", "x w", "c"),
        node("BatchNormalization", f"c {BN}", "d"),
        node("Unsqueeze", "g axes", "g4"),
        node("Mul", "g4 d", "e"),
        node("Add", "e o", "f"),
        node("Div", "f two", "h"),
        node("Sub", "o h", "y"),
    ]
    constants = {
        "w": randn(1, 6, 4, 3, 3), **batch_norm("n", 6), "g": randn(2, 6), "axes": np.array([1, 2]),
        "o": randn(3, 1, 6, 1, 1), "two": np.float32(2),
    }  # fmt: skip
    after = check(model(nodes, {"x": (1, 4, 8, 8)}, constants=constants), ["Conv"])
    assert sorted(tuple(t.dims) for t in after.graph.initializer) == [(6,), (6, 4, 3, 3)]


def test_pre_activation_becomes_one_mul_and_one_add():
    nodes = [
        node("BatchNormalization", f"x {BN}", "a"),
        node("Mul", "a g", "b"),
        node("Add", "b o", "c"),
        node("Relu", "c", "d"),
        node("Conv", "d w", "y"),
    ]
    constants = {"w": randn(1, 6, 4, 3, 3), **batch_norm("n", 4), "g": randn(2, 4, 1, 1),
                 "o": randn(3, 4, 1, 1)}  # fmt: skip
    proto = model(nodes, {"x": (1, 4, 8, 8)}, constants=constants)
    check(proto, ["Mul", "Add", "Relu", "Conv"])


def test_batch_norm_before_a_padded_convolution_stays_outside():
    nodes = [node("BatchNormalization", f"x {BN}", "a"), node("Conv", "a w", "y", pads=[1] * 4)]
    constants = {"w": randn(1, 6, 4, 3, 3), **batch_norm("n", 4)}
    check(model(nodes, {"x": (1, 4, 8, 8)}, constants=constants), ["Mul", "Add", "Conv"])


def test_batch_norm_on_a_matrix_and_on_a_sequence():
    for shape in ((3, 4), (2, 4, 5)):
        nodes = [node("BatchNormalization", f"x {BN}", "y")]
        check(model(nodes, {"x": shape}, constants=batch_norm("n", 4)), ["Mul", "Add"])


def test_a_result_that_others_read_is_left_to_them():
    nodes = [
        node("Conv", "x w", "c"),
        node("BatchNormalization", f"c {BN}", "d"),
        node("Add", "c d", "y"),
    ]
    constants = {"w": randn(1, 4, 4, 1, 1), **batch_norm("n", 4)}
    proto = model(nodes, {"x": (1, 4, 3, 3)}, constants=constants)
    check(proto, ["Conv", "Mul", "Add", "Add"])
    check(with_output(proto, "c"), ["Conv", "Mul", "Add", "Add"])


def with_output(proto, name):
    proto.graph.output.add().name = name
    proto.graph.output[-1].type.tensor_type.elem_type = TensorProto.FLOAT
    return proto


def test_a_shared_weight_is_not_changed_for_the_other():
    nodes = [
        node("Conv", "x w", "c"),
        node("BatchNormalization", f"c {BN}", "d"),
        node("Conv", "d w", "y"),
    ]
    constants = {"w": randn(1, 4, 4, 1, 1), **batch_norm("n", 4)}
    check(model(nodes, {"x": (1, 4, 3, 3)}, constants=constants), ["Conv", "Conv"])


def test_constants_along_other_axes_are_no_channels():
    for shape in ((4,), (1, 1, 4, 1), (2, 1, 1, 1), (1, 4, 4, 4)):
        nodes = [node("Conv", "x w", "c"), node("Mul", "c g", "y")]
        constants = {"w": randn(1, 4, 4, 1, 1), "g": randn(2, *shape)}
        check(model(nodes, {"x": (2, 4, 4, 4)}, constants=constants), ["Conv", "Mul"])


def test_a_constant_that_enlarges_the_result_is_no_channel():
    nodes = [node("Conv", "x w", "c"), node("Add", "c g", "y")]
    for shape in ((1, 4, 1, 1), (1, 1, 1, 1, 1)):
        constants = {"w": randn(1, 1, 4, 1, 1), "g": randn(2, *shape)}
        check(model(nodes, {"x": (2, 4, 3, 3)}, constants=constants), ["Conv", "Add"])


def test_bias_after_matmul_is_left_alone():
    nodes = [node("MatMul", "x w", "m"), node("Add", "m b", "y")]
    constants = {"w": randn(1, 4, 5), "b": randn(2, 5)}
    check(model(nodes, {"x": (2, 4)}, constants=constants), ["MatMul", "Add"])


def test_training_is_refused():
    nodes = [node("BatchNormalization", f"x {BN}", "y m2 v2", training_mode=1)]
    with pytest.raises(ModelError, match="training_mode"):
        canonicalize(model(nodes, {"x": (2, 4, 3)}, constants=batch_norm("n", 4)))


@pytest.mark.parametrize(("opset", "outputs"), [(13, "y a b c d"), (9, "y a b c d"), (6, "y")])
def test_training_as_it_was_is_refused(opset, outputs):
    nodes = [node("BatchNormalization", f"x {BN}", outputs)]
    with pytest.raises(ModelError, match="one output"):
        canonicalize(model(nodes, {"x": (2, 4, 3)}, constants=batch_norm("n", 4), opset=opset))


def test_computed_statistics_are_left_alone():
    nodes = [node("Relu", "n.s", "s"), node("BatchNormalization", "x s n.b n.m n.v", "y")]
    inputs = {"x": (2, 4, 3), "n.s": (4,)}
    constants = {k: v for k, v in batch_norm("n", 4).items() if k != "n.s"}
    check(model(nodes, inputs, constants=constants), ["Relu", "BatchNormalization"])


def test_what_would_overflow_is_not_folded():
    nodes = [node("Conv", "x w", "c"), node("Mul", "c g", "y")]
    constants = {"w": np.full((1, 1, 1), 1e30, np.float32), "g": np.float32(1e30)}
    proto = model(nodes, {"x": (1, 1, 4)}, constants=constants)
    assert ops(canonicalize(proto)) == ["Conv", "Mul"]
    nodes = [node("BatchNormalization", f"x {BN}", "y", epsilon=0.0)]
    constants = {**batch_norm("n", 4), "n.v": np.zeros(4, np.float32)}
    proto = model(nodes, {"x": (1, 4, 2)}, constants=constants)
    assert ops(canonicalize(proto)) == ["BatchNormalization"]


def test_half_precision_keeps_its_type():
    half = np.float16
    nodes = [node("Conv", "x w", "c"), node("BatchNormalization", f"c {BN}", "y")]
    constants = {"w": randn(1, 6, 4, 3, 3), **batch_norm("n", 6)}
    constants = {name: value.astype(half) for name, value in constants.items()}
    proto = model(nodes, {"x": (1, 4, 8, 8)}, constants=constants, dtype=TensorProto.FLOAT16)
    after = check(proto, ["Conv"], tolerance=2e-2)
    assert {numpy_helper.to_array(t).dtype for t in after.graph.initializer} == {np.dtype(half)}


def test_integer_arithmetic_is_exact_and_stays():
    nodes = [node("Mul", "x g", "a"), node("Div", "a g", "y")]
    proto = model(nodes, {"x": (2, 3)}, constants={"g": np.array(3)}, dtype=TensorProto.INT64)
    check(proto, ["Mul", "Div"])


@pytest.mark.parametrize("rounding", ["Ceil", "Cast"])
def test_steps_before_a_rounding_stay_as_they_are(rounding):
    # 15 times the quotient of equal numbers is 15, and their product with 15 / ln(63 / 16) is more.
    end = np.log(np.float32(63 / 16))
    last = (
        [node("Cast", "m", "n", to=TensorProto.INT64), node("Cast", "n", "y", to=TensorProto.FLOAT)]
        if rounding == "Cast"
        else [node(rounding, "m", "y")]
    )
    nodes = [node("Div", "x end", "d"), node("Mul", "d steps", "m"), *last]
    proto = model(nodes, {"x": (4,)}, constants={"end": end, "steps": np.float32(15)})
    assert ops(canonicalize(proto))[:2] == ["Div", "Mul"]
