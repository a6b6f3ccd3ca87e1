"""When an output counts as right, and what it is asked with."""

import ml_dtypes
import numpy as np
import pytest
from helpers.graphs import either, model, node, randn, typed
from onnx import TensorProto, helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.runtime.interface import TensorInfo
from ansor_deploy.ship.verify.draws import seeded_inputs
from ansor_deploy.ship.verify.judges import judge_outputs
from ansor_deploy.ship.verify.oracle import Oracle, oracles_of
from ansor_deploy.ship.verify.tolerance import compare, judge

TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2}


def off_by(error, dtype):
    """An element near zero beside one of 100: the scale of the output is 100."""
    return compare(np.array([100.0, error], dtype), np.array([100.0, 0.0], dtype))


@pytest.mark.parametrize(("dtype", "atol"), TOLERANCES.items())
def test_the_absolute_tolerance_scales_with_the_output(dtype, atol):
    assert off_by(0.9 * atol * 100, dtype)[0]
    assert not off_by(1.2 * atol * 100, dtype)[0]


@pytest.mark.parametrize(
    ("dtype", "rtol"), [("float64", 1e-7), ("float32", 1e-3), ("float16", 1e-2)]
)
def test_a_large_element_may_differ_by_its_own_share_too(dtype, rtol):
    expected = np.array([1.0], dtype)
    within = expected * (1 + 0.9 * rtol)
    beyond = expected * (1 + 1.5 * (rtol + TOLERANCES[dtype]))
    assert compare(within.astype(dtype), expected)[0]
    assert not compare(beyond.astype(dtype), expected)[0]


def test_bfloat16_is_compared_as_a_half_float():
    expected = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    assert compare((expected * 1.004).astype(ml_dtypes.bfloat16), expected)[0]
    assert not compare((expected * 1.1).astype(ml_dtypes.bfloat16), expected)[0]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantised_values_may_be_one_step_off(dtype):
    expected = np.array([3, 120], dtype)
    assert compare(expected + np.array([1, -1]).astype(dtype), expected)[0]
    assert not compare(expected + np.array(2, dtype), expected)[0]


def test_the_ends_of_a_byte_s_range_are_far_apart():
    one, other = np.array([0], np.uint8), np.array([255], np.uint8)
    assert not compare(one, other)[0]
    assert not compare(np.array([-128], np.int8), np.array([127], np.int8))[0]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint32", "bool"])
def test_other_integers_and_booleans_are_equal_or_wrong(dtype):
    expected = np.array([0, 1, 1]).astype(dtype)
    assert compare(expected.copy(), expected) == (True, 0.0, 0.0)
    assert not compare(np.array([1, 1, 1]).astype(dtype), expected)[0]


def test_large_integers_are_compared_exactly():
    expected = np.array([2**60], np.int64)
    assert not compare(expected + 1, expected)[0]


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_must_meet_its_like(special):
    expected = np.array([1.0, special], np.float32)
    assert compare(expected.copy(), expected) == (True, 0.0, 0.0)
    for other in {0.0, np.inf, -np.inf, np.nan} - {special}:
        actual = np.array([1.0, other], np.float32)
        if not np.array_equal(actual, expected, equal_nan=True):
            assert compare(actual, expected) == (False, np.inf, np.inf)
            assert compare(expected, actual) == (False, np.inf, np.inf)


def test_the_scale_ignores_infinities():
    expected = np.array([np.inf, 1.0], np.float32)
    assert not compare(np.array([np.inf, 1.1], np.float32), expected)[0]


def test_an_output_of_zeros_is_judged_on_its_own():
    zeros = np.zeros(3, np.float32)
    assert compare(zeros + np.float32(5e-5), zeros)[0]
    assert not compare(zeros + np.float32(5e-4), zeros)[0]


@pytest.mark.parametrize("other", [np.zeros((2, 3), np.float32), np.zeros(6, np.float64)])
def test_another_shape_or_type_is_wrong(other):
    assert compare(other, np.zeros(6, np.float32)) == (False, np.inf, np.inf)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_scalar_is_compared_too(dtype):
    one = np.array(3, dtype)
    assert judge(one, one, [one, one]).ok
    assert not judge(one + np.array(1, dtype), one, [one, one]).ok
    assert judge(one + np.array(1, dtype), one, [one + np.array(1, dtype)]).ok


def test_an_empty_output_is_right():
    assert compare(np.zeros((0, 3)), np.zeros((0, 3))) == (True, 0.0, 0.0)


def test_errors_are_reported_absolute_and_relative_to_the_scale():
    expected = np.array([4.0, -8.0])
    _, absolute, relative = compare(np.array([4.0, -6.0]), expected)
    assert (absolute, relative) == (2.0, 0.25)


INPUTS = [
    TensorInfo("x", (50,), "float32"),
    TensorInfo("i", (50,), "int64"),
    TensorInfo("b", (50,), "bool"),
]


def test_inputs_are_reproducible_and_differ_by_seed():
    one, again, other = (seeded_inputs(INPUTS, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not any(np.array_equal(one[name], other[name]) for name in one)


def test_inputs_have_the_types_and_ranges_that_were_asked_for():
    made = seeded_inputs(INPUTS, 0, upper=8)
    assert {name: array.dtype.name for name, array in made.items()} == {
        "x": "float32",
        "i": "int64",
        "b": "bool",
    }
    assert made["i"].min() >= 0
    assert made["i"].max() == 7
    assert set(made["b"].tolist()) == {True, False}


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_scalar_inputs_are_arrays(dtype):
    made = seeded_inputs([TensorInfo("x", (), dtype)], 0)["x"]
    assert isinstance(made, np.ndarray)
    assert (made.shape, made.dtype) == ((), np.dtype(dtype))


def test_indices_shrink_until_the_table_has_them():
    proto = model(
        [node("Gather", "k x", "y")],
        {"x": (100,)},
        constants={"k": randn(0, 2, 4)},
        dtype=TensorProto.INT64,
    )
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    feed, outputs = Oracle(proto).ask([TensorInfo("x", (100,), "int64")], 0)
    assert feed["x"].max() == 1
    assert outputs["y"].shape == (100, 4)


def test_the_oracle_multiplies_floats_by_weights_of_blocks():
    """Unasked, ONNX Runtime would make bytes of them first: 0.4% of the largest product."""
    whole = np.random.default_rng(0).integers(-8, 8, (64, 48))
    scales = 0.01 + np.abs(randn(1, 2, 48)).astype(np.float32)
    proto = model(
        [node("DequantizeLinear", "q s", "w", axis=0, block_size=32), node("MatMul", "x w", "y")],
        {"x": (3, 64)},
        constants={"s": scales},
        opset=21,
    )
    proto.graph.initializer.append(helper.make_tensor("q", TensorProto.INT4, whole.shape, whole))
    feed, outputs = Oracle(proto).ask([TensorInfo("x", (3, 64), "float32")], 0)
    product = feed["x"].astype(np.float64) @ (whole * np.repeat(scales, 32, 0))
    np.testing.assert_allclose(outputs["y"], product, atol=1e-5 * np.abs(product).max())


def test_halves_around_an_lstm_are_judged_with_noise():
    """ONNX Runtime crashes when it looks for other layouts there, and is asked without."""
    weights = {"w": (32, 8, 5), "lw": (2, 128, 32), "lr": (2, 128, 32), "m": (64, 8)}
    known = {name: np.full(shape, 0.1, np.float16) for name, shape in weights.items()}
    nodes = [
        node("Cast", "x", "half", to=TensorProto.FLOAT16),
        node("Conv", "half w", "c", pads=[2, 2]),
        node("Relu", "c", "positive"),
        node("Transpose", "positive", "steps", perm=[2, 0, 1]),
        node("LSTM", "steps lw lr", "states", hidden_size=32, direction="bidirectional"),
        node("Transpose", "states", "turned", perm=[0, 2, 1, 3]),
        node("Reshape", "turned shape", "flat"),
        node("Transpose", "flat", "rows", perm=[1, 0, 2]),
        node("MatMul", "rows m", "o"),
        node("Cast", "o", "y", to=TensorProto.FLOAT),
    ]
    proto = model(nodes, {"x": (1, 8, 40)}, constants={**known, "shape": np.int64([40, 1, 64])})
    oracle = Oracle(proto, 1)
    feed, outputs = oracle.ask([TensorInfo("x", (1, 8, 40), "float32")], 0)
    samples = [one["y"] for one in oracle.samples(feed, 4)]
    assert samples
    assert any((one != outputs["y"]).any() for one in samples)


def test_a_branch_that_contradicts_the_sizes_is_not_taken():
    """As PyTorch exports `x.squeeze(1)`, where x has one row or many."""
    steps = [
        node("Shape", "x", "sizes", start=1, end=2),
        node("Equal", "sizes one", "equal"),
        node("Squeeze", "equal", "is"),
        either("is", "z", [node("Squeeze", "x one", "a")], [node("Identity", "x", "b")], None),
        node("Relu", "z", "y"),
    ]
    shape = (TensorProto.FLOAT, (2, 64))
    proto = typed(steps, {"x": shape}, {"y": shape}, {"one": np.array([1])})
    feed, outputs = Oracle(proto).ask([TensorInfo("x", (2, 64), "float32")], 0)
    np.testing.assert_array_equal(outputs["y"], np.maximum(feed["x"], 0))


def test_the_oracles_of_several_sizes_share_their_sessions():
    constants = {"w": np.eye(4, dtype=np.float32)}
    proto = model([node("MatMul", "x w", "y")], {"x": ("rows", 4)}, constants=constants)
    protos = [bind_shapes(proto, {"x": (rows, 4)}) for rows in (1, 3)]
    oracles = oracles_of(protos)
    assert len({id(one.ways) for one in oracles}) == 1
    for rows, oracle in zip((1, 3), oracles, strict=True):
        feed, outputs = oracle.ask([TensorInfo("x", (rows, 4), "float32")], 0)
        np.testing.assert_array_equal(outputs["y"], feed["x"])


def test_models_with_other_weights_share_nothing():
    def scaled(by):
        constants = {"s": np.float32(by)}
        return model([node("Mul", "x s", "y")], {"x": (2,)}, constants=constants)

    made = [
        one.outputs({"x": np.ones(2, np.float32)}) for one in oracles_of([*map(scaled, (2, 3))])
    ]
    assert [one["y"].tolist() for one in made] == [[2, 2], [3, 3]]


def test_noise_is_drawn_until_a_difference_is_explained():
    """One run with noise explains a few roundings; four cannot explain a wrong number."""
    proto = model([node("Sigmoid", "x", "a"), node("Mul", "a a", "y")], {"x": (1000,)})
    oracle, runs = Oracle(proto), []
    feed = {"x": np.linspace(-4, 4, 1000, dtype=np.float32)}
    right, sample = oracle.outputs(feed)["y"], oracle.samples
    oracle.samples = lambda feed, count: runs.append(count) or sample(feed, count)
    for off, ok, drawn in ((0, True, []), (1e-5, True, [1]), (1e-2, False, [1, 3])):
        runs.clear()
        actual = {"y": right * np.float32(1 + off)}
        found = judge_outputs(actual, {"y": right}, oracle, feed, {})
        assert (found["y"].ok, runs) == (ok, drawn)


def test_a_model_that_the_oracle_refuses_is_a_model_error():
    proto = model([node("Relu", "x", "y")], {"x": (1,)})
    proto.graph.node[0].op_type = "NoSuchOperator"
    with pytest.raises(ModelError, match="ONNX Runtime refuses"):
        Oracle(proto).ask([TensorInfo("x", (1,), "float32")], 0)


def test_an_element_that_a_decision_chooses_stays_among_what_it_may_be():
    """Rows of numbers in 0..1 that each run with noise selects otherwise: 5 is none of these."""
    rng = np.random.default_rng(0)
    expected, other, *samples = rng.random((6, 20, 64)).astype(np.float32)
    assert judge(other, expected, samples).ok
    for far in (3, 5):
        wrong = expected.copy()
        wrong[2] = far
        assert not judge(wrong, expected, samples).ok


def test_operators_on_integers_may_be_computed_as_the_conversions_that_they_stand_for():
    """ONNX Runtime adds the bytes in steps of the result, which rounds some ties otherwise."""
    steps = {"s": np.float32(0.3), "z": np.uint8(128), "t": np.float32(0.2)}
    steps["b"] = np.arange(256, dtype=np.uint8)
    both = node("QLinearAdd", "i s z b s z t z", "j")
    both.domain = "com.microsoft"
    nodes = [node("QuantizeLinear", "x s z", "i"), both, node("DequantizeLinear", "j t z", "y")]
    oracle = Oracle(model(nodes, {"x": (256, 256)}, constants=steps))
    feed = {
        "x": np.repeat(np.float32(0.3) * (np.arange(256, dtype=np.float32)[:, None] - 128), 256, 1)
    }
    number = np.arange(-128, 128, dtype=np.float32) * np.float32(0.3)
    total = np.rint((number[:, None] + number) / np.float32(0.2))
    wanted = np.clip(total, -128, 127) * np.float32(0.2)
    assert (oracle.outputs(feed)["y"] != wanted).any()
    np.testing.assert_array_equal(oracle.second(feed)["y"], wanted)


class _SecondWithMore:
    """An oracle whose second run has an output that is not judged."""

    sorts, steps = False, None

    def second(self, feed):
        return {"y": np.ones(3, np.float32), "z": np.ones(2, np.float32)}

    def samples(self, feed, count):
        return []


def test_some_outputs_are_judged_by_a_second_run_with_all():
    actual, expected = ({"y": np.full(3, of, np.float32)} for of in (1, 2))
    assert judge_outputs(actual, expected, _SecondWithMore(), {}, {})["y"].ok
