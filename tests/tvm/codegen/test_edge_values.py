"""NaN, infinities and zero divisors in kernels, each operator's values from one library."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from helpers import built, graphs, programs
from helpers.graphs import model, node
from onnx import TensorProto
from tvm import te

from ansor_deploy._tvm import tvm, tvm_target
from ansor_deploy.codegen.kernels.lowering import PIPELINE
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

NAN, INF = np.nan, np.inf
LEAST = np.finfo(np.float32).min
VALUES = np.array(
    [NAN, INF, -INF, 0.0, -0.0, 1e-40, -1e-40, LEAST, -LEAST, 1.0, -1.0, -7.0, -88.0, 100.0],
    np.float32,
)
# What ONNX defines, and ONNX Runtime computes, of all of these.
UNARY = [
    "Relu", "Elu", "Selu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "HardSwish", "Sigmoid",
    "Tanh", "Erf", "Gelu", "Softsign", "Round", "Sign", "Celu", "Abs", "Exp", "Log", "Sqrt",
    "Clip6", "Max1", "Min1", "PRelu1", "Mul0",
]  # fmt: skip
# A row of NaN in another place each, and rows without any number.
ROWS = np.array(
    [
        [NAN, 1, 2, 3],
        [0, 1, NAN, 3],
        [0, 1, 2, NAN],
        [-INF, -INF, -INF, -INF],
        [INF, INF, INF, INF],
        [LEAST, LEAST, LEAST, LEAST],
        [-INF, -INF, 5, -INF],
        [INF, 1, INF, 0],
        [NAN, NAN, NAN, NAN],
    ],
    np.float32,
)
LIKE_NUMPY = {"ReduceMax": np.max, "ReduceMin": np.min}


def graph(nodes, inputs, outputs, constants=None, dtype=TensorProto.FLOAT):
    """A model whose outputs have the types that follow from its nodes."""
    given = {name: (dtype, shape) for name, shape in inputs.items()}
    return graphs.typed(nodes, given, outputs, constants, 20)


@pytest.fixture(scope="module")
def elementwise():
    """What the library makes of VALUES, and of each pair of them."""
    named = {"Clip6": ("Clip", "x lo hi"), "Max1": ("Max", "x one"), "Min1": ("Min", "one x")}
    named |= {"PRelu1": ("PRelu", "x one"), "Mul0": ("Mul", "zero x")}
    nodes = [node(*named.get(op, (op, "x")), op) for op in UNARY]
    nodes += [node("Max", "a b", "Max"), node("Min", "a b", "Min"), node("Max", "a b x0", "Max3")]
    outputs = dict.fromkeys([*UNARY, "Max", "Min", "Max3"], TensorProto.FLOAT)
    constants = {"lo": np.float32(-1), "hi": np.float32(6), "one": np.float32(1)}
    constants["zero"] = np.float32(0)
    constants = {name: np.array(value) for name, value in constants.items()}
    constants["x0"] = np.array(LEAST)
    pairs = np.array(list(product(VALUES, VALUES)), np.float32).T.copy()
    feeds = {"x": VALUES, "a": pairs[0], "b": pairs[1]}
    shapes = {name: array.shape for name, array in feeds.items()}
    proto = graph(nodes, shapes, outputs, constants)
    return proto, feeds, dict(zip(outputs, built.run(proto, feeds), strict=True))


@pytest.fixture(scope="module")
def expected(elementwise):
    proto, feeds, _ = elementwise
    names = [value.name for value in proto.graph.output]
    return dict(zip(names, graphs.run(proto, feeds), strict=True))


@pytest.mark.parametrize("op", [*UNARY, "Max", "Min", "Max3"])
def test_edge_values_as_in_onnx_runtime(elementwise, expected, op):
    np.testing.assert_allclose(elementwise[2][op], expected[op], rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def rows():
    """What the library makes of ROWS, along them."""
    nodes = [node(op, "x axis", op, keepdims=0) for op in (*LIKE_NUMPY, "ReduceLogSumExp")]
    nodes += [node("ArgMax", "x", "first", axis=1, keepdims=0)]
    nodes += [node("ArgMin", "x", "last", axis=1, keepdims=0, select_last_index=1)]
    nodes += [node("Softmax", "x", "Softmax"), node("Hardmax", "x", "Hardmax")]
    nodes += [node("Reshape", "x image", "i"), node("GlobalMaxPool", "i", "g")]
    nodes += [node("Reshape", "g flat", "GlobalMaxPool")]
    nodes += [node("MaxPool", "i", "MaxPool", kernel_shape=[1, 3], pads=[0, 1, 0, 1])]
    nodes += [node("MaxPool", "i", "p places", kernel_shape=[1, 3], pads=[0, 1, 0, 1])]
    names = [*LIKE_NUMPY, "ReduceLogSumExp", "Softmax", "Hardmax", "GlobalMaxPool", "MaxPool"]
    outputs = dict.fromkeys(names, TensorProto.FLOAT)
    outputs |= dict.fromkeys(["first", "last", "places"], TensorProto.INT64)
    constants = {"axis": [1], "image": [1, len(ROWS), 1, 4], "flat": [-1]}
    proto = graph(
        nodes, {"x": ROWS.shape}, outputs, {n: np.array(v, np.int64) for n, v in constants.items()}
    )
    return dict(zip(outputs, built.run(proto, {"x": ROWS}), strict=True))


@pytest.mark.parametrize("op", LIKE_NUMPY)
def test_extremes_of_rows_keep_nan_and_infinities(rows, op):
    np.testing.assert_array_equal(rows[op], LIKE_NUMPY[op](ROWS, axis=1))


def test_pooling_keeps_nan_and_its_padding_is_below_all(rows):
    np.testing.assert_array_equal(rows["GlobalMaxPool"], ROWS.max(1))
    wide = np.pad(ROWS, ((0, 0), (1, 1)), constant_values=-INF)
    windows = np.stack([wide[:, at : at + 4] for at in range(3)]).max(0)
    np.testing.assert_array_equal(rows["MaxPool"].reshape(ROWS.shape), windows)


def test_places_of_maxima_are_in_range(rows):
    assert rows["places"].min() >= 0
    assert rows["places"].max() < ROWS.size


def test_indices_of_extremes_are_in_range(rows):
    np.testing.assert_array_equal(rows["first"], [0, 3, 2, 0, 0, 0, 2, 0, 0])
    np.testing.assert_array_equal(rows["last"][3:8], [3, 3, 3, 3, 3])
    assert set(rows["last"]) <= set(range(4))


def test_rows_without_a_number(rows):
    with np.errstate(all="ignore"):
        sums = np.log(np.exp(ROWS.astype(np.float64)).sum(1))
    np.testing.assert_allclose(rows["ReduceLogSumExp"][:5], sums[:5])
    assert np.isnan(rows["Softmax"][3]).all()
    np.testing.assert_array_equal(rows["Hardmax"][3], [1, 0, 0, 0])


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_constant_zero_divides(zero):
    made = model([node("Div", "x z", "y")], {"x": (5,)}, constants={"z": np.float32(zero)})
    feeds = {"x": np.array([1, -2, 0, np.inf, np.nan], np.float32)}
    np.testing.assert_array_equal(built.run(made, feeds)[0], graphs.run(made, feeds)[0])


def test_divisions_that_processors_trap_on():
    least = np.iinfo(np.int32).min
    a, b = np.array([[7, 0], [-7, 0], [0, 0], [least, -1], [7, -2], [least, 1]], np.int32).T.copy()
    nodes = [node("Div", "a b", "Div"), node("Mod", "a b", "Mod"), node("Mod", "a b", "f", fmod=1)]
    outputs = dict.fromkeys(["Div", "Mod", "f"], TensorProto.INT32)
    proto = graph(nodes, {"a": a.shape, "b": b.shape}, outputs, dtype=TensorProto.INT32)
    quotient, rest, signed = built.run(proto, {"a": a, "b": b})
    np.testing.assert_array_equal(quotient, [0, 0, 0, least, -3, least])
    np.testing.assert_array_equal(rest, [0, 0, 0, 0, -1, 0])
    np.testing.assert_array_equal(signed, [0, 0, 0, 0, 1, 0])


@pytest.mark.parametrize(
    ("target", "one", "none"),
    [("intel-cpu-avx2", "vmaxps", "cmpunord"), ("cortex-a53", "fmax", "fcm")],
)
def test_relu_is_one_instruction(target, one, none):
    target = load_target(target, [shipped("targets")])
    x = te.placeholder((64,), name="x")
    relu = te.compute(x.shape, lambda i: te.max(x[i], tvm.tirx.const(0, "float32")), name="y")
    sch = default_schedule(programs.program([x], relu), target)
    made = tvm.compile(sch.mod, tvm_target(target), tir_pipeline=PIPELINE)
    assembly = made.mod.inspect_source("asm")
    assert one in assembly
    assert none not in assembly


def test_nan_of_a_type_that_tvm_does_not_ask_for_nan():
    values = ROWS.astype(ml_dtypes.bfloat16)
    nodes = [node("Sign", "x", "Sign"), node("ArgMax", "x", "ArgMax", axis=1, keepdims=0)]
    outputs = {"Sign": TensorProto.BFLOAT16, "ArgMax": TensorProto.INT64}
    proto = graph(nodes, {"x": ROWS.shape}, outputs, dtype=TensorProto.BFLOAT16)
    signs, places = built.run(proto, {"x": values})
    np.testing.assert_array_equal(signs.astype(np.float32), np.sign(ROWS))
    np.testing.assert_array_equal(places, [0, 3, 2, 0, 0, 0, 2, 0, 0])


@pytest.mark.parametrize("op", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_no_comparison_with_nan_is_true_and_each_negated_one_is(op):
    values = np.array([1, np.nan, 2, np.inf, -0.0] * 4, np.float32)
    feeds = {"a": values, "b": np.repeat(values[:5], 4)}
    nodes = [node(op, "a b", "c"), node("Not", "c", "d"), node("Where", "d a b", "y")]
    proto = model(nodes, {"a": [20], "b": [20]})
    np.testing.assert_array_equal(built.run(proto, feeds)[0], graphs.run(proto, feeds)[0])


@pytest.mark.parametrize("negated", [False, True])
def test_a_nan_is_told_by_comparing_it_with_itself(negated):
    """As exporters without IsNaN write it."""
    nodes = [node("Mul", "x two", "m"), node("Equal", "m m", "e")]
    nodes += [node("Not", "e", "n"), node("Where", "n seven m" if negated else "e m seven", "y")]
    proto = model(
        nodes, {"x": VALUES.shape}, constants={"two": np.float32(2), "seven": np.float32(7)}
    )
    (made,) = built.run(proto, {"x": VALUES})
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(made, np.where(np.isnan(VALUES), 7, 2 * VALUES))
