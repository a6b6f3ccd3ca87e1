"""Constants are folded to what ONNX Runtime computes, and the rest is left alone."""

import math

import numpy as np
import pytest
from helpers.graphs import assert_same, model, node, ops, randn
from onnx import TensorProto

from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.graph.constant_math import exponential
from ansor_deploy.model.operators.support import refuse_early

INT8 = np.random.default_rng(0).integers(-128, 128, (4, 3)).astype(np.int8)
CONSTANTS = {
    "c": randn(0, 4, 3),
    "d": randn(1, 2, 3, 5),
    "p": np.abs(randn(2, 3)) + 0.5,
    "q": INT8,
    "scale": np.float32([0.5, 0.25, 0.125]),
    "zero": np.int8([1, 0, -7]),
    "axes": np.array([0, -1]),
    "two": np.float32(2),
    "half": np.float32(0.5),
    "three": np.array(3),
    "odd": np.float32(2.5),
}
# ONNX Runtime itself normalises by the running statistics: with this momentum they are the batch's.
TRAINING = {"training_mode": 1, "momentum": 1.0}
FOLDED = {
    "mean": node("ReduceMean", "c", "r", axes=[1]),
    "mean of all": node("ReduceMean", "c", "r", keepdims=0),
    "sum over axes": node("ReduceSum", "d axes", "r", keepdims=0),
    "sum of squares": node("ReduceSumSquare", "c", "r", axes=[0]),
    "norm": node("ReduceL2", "d", "r", axes=[1, 2]),
    "sum of sizes": node("ReduceL1", "c", "r", axes=[-1]),
    "square": node("Pow", "c two", "r"),
    "cube": node("Pow", "c three", "r"),
    "root": node("Pow", "p half", "r"),
    "exponential": node("Exp", "c", "r"),
    "sigmoid": node("Sigmoid", "c", "r"),
    "rectified": node("Relu", "c", "r"),
    "product": node("MatMul", "c d", "r"),
    "batch norm": node("BatchNormalization", "d p p p p", "r"),
    "batch norm in training": node("BatchNormalization", "d p p p p", "r m v", **TRAINING),
    "dequantized": node("DequantizeLinear", "q scale zero", "r", axis=1),
    "dequantized without zero": node("DequantizeLinear", "q half", "r"),
    "quantized": node("QuantizeLinear", "c scale zero", "r", axis=-1),
    "quantized to a byte": node("QuantizeLinear", "c half", "r"),
}
LEFT = {
    "another power": node("Pow", "p odd", "r"),
    "a reduction that is none": node("ReduceSum", "c", "r", noop_with_empty_axes=1),
    "tanh": node("Tanh", "c", "r"),
}


def of_constants(made, dtype=TensorProto.FLOAT, constants=CONSTANTS):
    """A model that adds to its input what the node makes of constants."""
    used = {name: constants[name] for name in made.input}
    return model([made, node("Cast", "r", "f", to=dtype), node("Add", "x f", "y")], {"x": (1,)},
                 constants=used, dtype=dtype)  # fmt: skip


@pytest.mark.parametrize("made", FOLDED.values(), ids=FOLDED)
def test_a_constant_is_what_onnx_runtime_computes(made):
    proto = of_constants(made)
    after = canonicalize(proto)
    assert ops(after) == ["Add"]
    assert_same(proto, after)


@pytest.mark.parametrize("made", LEFT.values(), ids=LEFT)
def test_another_form_is_left_alone(made):
    assert ops(canonicalize(of_constants(made)))[0] == made.op_type


def test_the_longest_floats_are_left_alone():
    constants = {"c": CONSTANTS["c"].astype(np.float64)}
    proto = of_constants(FOLDED["mean"], TensorProto.DOUBLE, constants)
    assert ops(canonicalize(proto)) == ["ReduceMean", "Add"]


def test_a_product_beyond_reason_is_left_alone():
    constants = {"c": np.zeros((1 << 10, 1 << 10), np.float32)}
    assert ops(canonicalize(of_constants(node("MatMul", "c c", "r"), constants=constants))) == [
        "MatMul", "Add",
    ]  # fmt: skip


def standardised(*middle):
    """A convolution whose weight is standardised in the graph."""
    nodes = [node("Reshape", "w flat", "f"), *middle, node("Reshape", "n shape", "v"),
             node("Conv", "x v", "y")]  # fmt: skip
    ones, zeros = np.ones(8, np.float32), np.zeros(8, np.float32)
    constants = {
        "w": randn(0, 8, 4, 3, 3), "flat": np.array([1, 8, -1]), "shape": np.array([8, 4, 3, 3]),
        "ones": ones, "zeros": zeros, "eps": np.float32(1e-5),
    }  # fmt: skip
    used = {name for one in nodes for name in one.input}
    kept = {name: value for name, value in constants.items() if name in used}
    return model(nodes, {"x": (1, 4, 6, 6)}, constants=kept)


def test_a_standardised_weight_is_computed_once():
    trained = node("BatchNormalization", "f ones zeros zeros ones", "n m v2", **TRAINING)
    by_hand = [
        node("ReduceMean", "f", "mean", axes=[0, 2]),
        node("Sub", "f mean", "centred"),
        node("Mul", "centred centred", "squared"),
        node("ReduceMean", "squared", "variance", axes=[0, 2]),
        node("Add", "variance eps", "shifted"),
        node("Sqrt", "shifted", "root"),
        node("Reciprocal", "root", "factor"),
        node("Mul", "centred factor", "n"),
    ]
    for proto in (standardised(trained), standardised(*by_hand)):
        refuse_early(proto)
        after = canonicalize(proto)
        assert ops(after) == ["Conv"]
        assert_same(proto, after)


def test_the_exponential_is_right_to_the_last_bit_of_a_float32():
    powers = np.concatenate([np.linspace(-104, 89, 4001), randn(0, 4000).astype(np.float64)])
    exact = np.array([math.exp(power) for power in powers])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            exponential(powers).astype(np.float32), exact.astype(np.float32)
        )
        ends = exponential(np.array([np.nan, np.inf, -np.inf, 0.0]))
    np.testing.assert_array_equal(ends, [np.nan, np.inf, 0.0, 1.0])
