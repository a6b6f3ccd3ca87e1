"""Operators that functions of ours compile: node tests of the `onnx` package, and others."""

import math

import numpy as np
import pytest
from helpers.built import assert_like_oracle, count_ops, run
from helpers.graphs import model, node, randn
from helpers.graphs import run as by_onnx_runtime
from helpers.learned import learned
from helpers.together import Together
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize
from benchmarks.fuzz.conformance_cases import bound, case_of, fault

# fmt: off
RIGHT = (
    "basic_deform_conv_with_padding", "deform_conv_with_mask_bias",
    "deform_conv_with_multiple_offset_groups",
    "bitcast_2d_float32_to_int32", "bitcast_scalar_float32_to_int32",
    "bitshift_left_int32_shift_ge_width", "bitshift_right_int32_negative_shift",
    "col2im_5d", "col2im_dilations", "col2im_strides", "constant_pad_axes",
    "convtranspose_output_shape", "cumprod_1d_reverse_exclusive",
    "cumprod_2d_negative_axis", "det_nd",
    "dft_axis", "dft_irfft", "dft_rfft_opset19",
    "dropout_default_mask", "isinf_negative", "isinf_positive", "l1normalization_axis_1",
    "layer_normalization_4d_axis1", "maxpool_with_argmax_2d_precomputed_pads",
    "maxpool_with_argmax_2d_precomputed_strides",
    "mod_float_edge_cases_fmod_0_float16", "onehot_negative_indices", "onehot_with_axis",
    "pow_types_float32_int32", "pow_types_int64_float32", "reduce_max_bool_inputs",
    "reversesequence_batch", "reversesequence_time", "spacetodepth_crd_mode_example",
    "stft_with_window",
    "tensorscatter_3d", "tensorscatter_circular",
)
# fmt: on


@pytest.fixture(scope="module")
def cases():
    models, feeds = {}, {}
    for name in RIGHT:
        case = case_of(f"test_{name}")
        proto, given = bound(case, case.data_sets[0][0])
        values = [numpy_helper.to_array(v) if hasattr(v, "raw_data") else v for v in given]
        names = [value.name for value in proto.graph.input]
        models[name], feeds[name] = proto, dict(zip(names, map(np.asarray, values), strict=True))
    return Together(models, feeds)


@pytest.mark.parametrize("name", RIGHT)
def test_as_onnx_says(name, cases):
    _, expected = case_of(f"test_{name}").data_sets[0]
    for have, want in zip(cases.outputs(name), expected, strict=True):
        plain = numpy_helper.to_array(want) if hasattr(want, "raw_data") else want
        assert fault(have, plain) == ""


def test_numbers_of_64_bits_are_held_to_bounds():
    """As places in a tensor are, of which a run decides the size."""
    bounds = {"low": np.array(-1), "high": np.array(2**40)}
    nodes = [node("Cast", "x", "n", to=TensorProto.INT64), node("Max", "n low", "m"),
             node("Min", "m high", "c"), node("Cast", "c", "y", to=TensorProto.FLOAT)]  # fmt: skip
    assert_like_oracle(model(nodes, {"x": (4, 5)}, constants=bounds))


def test_the_determinant_of_three_rows():
    assert_like_oracle(model([node("Det", "x", "y")], {"x": (2, 5, 3, 3)}))


def test_a_hard_swish_divides_nothing():
    proto = model([node("HardSwish", "x", "y")], {"x": (4, 9)})
    (kernel,) = count_ops(proto)
    assert "divide" not in kernel
    assert_like_oracle(proto)


@pytest.mark.parametrize("opset", [9, 17])
def test_a_local_response_calls_no_power(opset):
    proto = model([node("LRN", "x", "y", size=5, alpha=0.1)], {"x": (1, 9, 4, 4)}, opset=opset)
    kernels = count_ops(proto)
    assert "sqrt" in str(kernels)
    assert "pow" not in str(kernels)
    assert_like_oracle(proto)


def test_a_local_response_with_another_exponent():
    words = {"size": 3, "alpha": 0.1, "beta": 0.6, "bias": 2.0}
    assert_like_oracle(model([node("LRN", "x", "y", **words)], {"x": (2, 5, 4, 3)}))


@pytest.mark.parametrize("axes", [{}, {"axes": [1, 0]}])
def test_a_slice_by_attributes(axes):
    made = node("Slice", "x", "y", starts=[1, -3], ends=[4, 9], **axes)
    assert_like_oracle(model([made], {"x": (5, 6)}, opset=9))


def test_larger_determinants_are_refused():
    with pytest.raises(ModelError, match="at most 4 rows"):
        canonicalize(model([node("Det", "x", "y")], {"x": (5, 5)}))


def test_a_whole_power_of_whole_numbers():
    nodes = [node("Cast", "x", "n", to=TensorProto.INT32), node("Pow", "n k", "p"),
             node("Cast", "p", "y", to=TensorProto.FLOAT)]  # fmt: skip
    assert_like_oracle(model(nodes, {"x": (8,)}, constants={"k": np.array(3, np.int32)}))


def test_the_maximum_of_a_masked_row_is_minus_infinity():
    nodes = [node("Greater", "x zero", "seen"), node("Where", "seen x none", "masked"),
             node("ReduceMax", "masked", "y", axes=[1])]  # fmt: skip
    constants = {"zero": np.float32(0), "none": np.float32(-np.inf)}
    assert_like_oracle(model(nodes, {"x": (64, 2)}, constants=constants))


def test_dropout_in_training_is_refused():
    nodes = [node("Dropout", "x r t", "y")]
    constants = {"r": np.float32(0.5), "t": np.array(True)}
    with pytest.raises(ModelError, match="random"):
        canonicalize(model(nodes, {"x": (4,)}, constants=constants))


def test_not_a_number_is_replaced():
    x = np.array([[1, np.nan, 3], [np.nan, 0, -1]], np.float32)
    words = {"imputed_value_floats": [7.0, 8.0, 9.0], "replaced_value_float": np.nan}
    (found,) = run(learned("Imputer", {"x": x}, **words), {"x": x})
    np.testing.assert_array_equal(found, [[1, 8, 3], [7, 0, -1]])


def test_an_infinity_of_a_column_goes_to_its_place_alone():
    x = randn(0, 2, 12, 12)
    x[0, 0, 0], x[1, -1, -1] = np.inf, -np.inf
    constants = {"image": np.array([5, 7]), "block": np.array([2, 3])}
    nodes = [node("Col2Im", "x image block", "y", pads=[0, 1, 0, 0], strides=[2, 1])]
    proto = model(nodes, {"x": x.shape}, constants=constants, opset=18)
    (found,), (wanted,) = run(proto, {"x": x}), by_onnx_runtime(proto, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("opset", [7, 8])
def test_models_from_before_where(opset):
    proto = model([node("Abs", "x", "y")], {"x": (3, 5)}, opset=opset)
    gelu = helper.make_node("Gelu", ["x"], ["h"], domain="com.microsoft")
    proto.graph.node[0].input[0] = "h"
    proto.graph.node.insert(0, gelu)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert_like_oracle(proto)


def test_elements_of_a_sequence_are_computed_with():
    nodes = [node("SplitToSequence", "x four", "parts", axis=1), node("SequenceAt", "parts i", "a"),
             node("SequenceAt", "parts j", "b"), node("Sub", "a b", "y")]  # fmt: skip
    constants = {"four": np.array(4), "i": np.array(0), "j": np.array(-1)}
    assert_like_oracle(model(nodes, {"x": (3, 8)}, constants=constants))


@pytest.mark.parametrize("shape", [(1, 8, 512, 256), (1, 2, 1 << 17)])
def test_a_norm_of_many_elements_is_as_good_as_one_of_few(shape):
    given = {"s": np.ones(shape[1], np.float32), "b": np.zeros(shape[1], np.float32)}
    proto = model([node("InstanceNormalization", "x s b", "y")], {"x": shape}, constants=given)
    x = np.random.default_rng(0).chisquare(3, shape).astype(np.float32)
    axes = tuple(range(2, len(shape)))
    apart = x - x.mean(axes, np.float64, keepdims=True)
    expected = apart / np.sqrt((apart**2).mean(axes, keepdims=True) + 1e-5)
    (made,) = run(proto, {"x": x})
    assert abs(made - expected).max() < 4 * np.finfo(np.float32).eps * abs(expected).max()


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "GlobalAveragePool"])
@pytest.mark.parametrize("shape", [(1, 3, 1 << 17), (1, 3, 400, 231)])
def test_a_sum_of_many_equal_elements_is_as_good_as_one_of_few(op, shape):
    inside = tuple(range(2, len(shape)))
    words = {} if op.startswith("G") else {"axes": inside, "keepdims": 0}
    proto = model([node(op, "x", "y", **words)], {"x": shape}, opset=12)
    (made,) = run(proto, {"x": np.full(shape, 0.1, np.float32)})
    expected = np.float32(0.1) * (math.prod(shape[2:]) if op == "ReduceSum" else 1.0)
    assert made.shape == ((1, 3, *(1 for _ in inside)) if op.startswith("G") else (1, 3))
    assert abs(made / expected - 1).max() < 2e-6


@pytest.mark.parametrize("op", ["ReduceMean", "GlobalAveragePool"])
def test_a_mean_of_equal_pixels_is_as_good_where_channels_lie_side_by_side(op):
    words = {} if op.startswith("G") else {"axes": (2, 3)}
    weights = np.random.default_rng(0).uniform(0.1, 1, (16, 3, 1, 1)).astype(np.float32)
    nodes = [node("Conv", "x w", "c"), node("Relu", "c", "r"), node(op, "r", "y", **words)]
    proto = model(nodes, {"x": (1, 3, 56, 56)}, constants={"w": weights}, opset=12)
    (made,) = run(proto, {"x": np.full((1, 3, 56, 56), 0.1, np.float32)})
    assert abs(made / (0.1 * weights.sum(1).reshape(made.shape)) - 1).max() < 2e-6


def test_booleans_beside_a_constant_are_equal_or_not():
    """As dynamo writes a division that rounds down: (r < 0) == (divisor < 0)."""
    nodes = [node("Less", "x one", "a"), node("Equal", "a no", "b"), node("Cast", "b", "y", to=1)]
    constants = {"one": np.float32(0.1), "no": np.array(False)}
    assert_like_oracle(model(nodes, {"x": (40,)}, constants=constants))
