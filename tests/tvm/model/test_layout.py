"""Models in channels-last layout: few transposes, few tasks, and the numbers of ONNX Runtime."""

import numpy as np
import onnx
import pytest
from helpers import built, graphs
from helpers.graphs import model, node, randn
from helpers.layout_models import MODELS, WEIGHTS, after, conv, pooled
from helpers.together import Together

from ansor_deploy._tvm import elements, relax, tvm
from ansor_deploy.model.relax.extract import extract
from benchmarks.networks import zoo


def transposes(calls):
    return sum(count for name, count in calls.items() if "transpose" in name)


def named(calls, *words):
    return [name for name in calls if all(word in name for word in words)]


@pytest.fixture(scope="module")
def models():
    return Together(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_are_onnx_runtime_s(name, models):
    models.assert_like_oracle(name)


def test_a_channel_of_several_results_is_copied_once():
    mod = built.imported(MODELS["depthwise multiplied"]).mod
    assert named(built.count_ops(MODELS["depthwise multiplied"]), "repeat")
    assert "// 2" not in next(f.script() for gv, f in mod.functions.items() if "conv2d" in str(gv))


@pytest.fixture(scope="module")
def resnet50():
    return built.imported(onnx.load(graphs.LIGHT_FOLDER / "light_resnet50.onnx")).mod


def test_resnet50_has_few_tasks(resnet50):
    assert len(set(extract(resnet50, built.HOST).values())) <= 30


def test_resnet50_is_transposed_at_its_input_only(resnet50):
    assert transposes(built.calls_of(resnet50)) <= 2


def test_resnet50_has_no_separate_activation_or_addition(resnet50):
    calls = built.calls_of(resnet50)
    assert not [name for name in calls if name.startswith(("relu", "add"))]
    assert sum(calls[name] for name in named(calls, "conv2d", "relu")) == 49


def test_mobilenet_is_transposed_once_and_its_clips_are_fused():
    calls = built.count_ops(zoo.mobilenet_v2(size=96))
    assert transposes(calls) <= 1
    assert named(calls, "conv2d", "clip")
    assert all("conv2d" in name for name in named(calls, "clip"))


def test_a_block_that_is_normalised_channels_last_is_not_transposed():
    nodes = [
        node("Conv", "x w", "c", pads=[1] * 4),
        node("Transpose", "c", "t", perm=[0, 2, 3, 1]),
        node("LayerNormalization", "t g h", "n", axis=-1),
        node("Transpose", "n", "u", perm=[0, 3, 1, 2]),
        node("Conv", "u p", "d"),
        node("GlobalAveragePool", "d", "m"),
        node("Flatten", "m", "y"),
    ]
    weights = {"w": randn(0, 16, 6, 3, 3), "g": randn(1, 16), "h": randn(2, 16)}
    constants = {**weights, "p": randn(3, 8, 16, 1, 1)}
    proto = model(nodes, {"x": (1, 6, 12, 12)}, constants=constants)
    assert transposes(built.count_ops(proto)) == 1  # of the input
    built.assert_like_oracle(proto)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_a_border_of_an_image_is_filled_where_it_lies(mode):
    nodes = [
        node("Conv", "x w", "c", pads=[1] * 4),
        node("Pad", "c widths", "p", mode=mode),
        node("Conv", "p w", "y"),
    ]
    constants = {"w": randn(0, 6, 6, 3, 3), "widths": np.array([0, 0, 1, 2, 0, 0, 3, 1])}
    proto = model(nodes, {"x": (1, 6, 12, 10)}, constants=constants, opset=19)
    assert transposes(built.count_ops(proto)) <= 2  # of the input and of the result
    built.assert_like_oracle(proto)


def test_tokens_of_an_image_are_added_to_where_they_are_multiplied():
    nodes = [
        node("Conv", "x w", "c", strides=[4, 4]),
        node("Reshape", "c flat", "f"),
        node("Transpose", "f", "t", perm=[0, 2, 1]),
        node("Add", "t p", "e"),
        node("MatMul", "e m", "d"),
        node("Add", "d e", "r"),
        node("MatMul", "r m", "g"),
        node("Add", "g r", "y"),
    ]
    constants = {"w": randn(0, 16, 6, 4, 4), "p": randn(1, 1, 9, 16), "m": randn(2, 16, 16)}
    flat = {"flat": np.array([1, 16, 9])}
    proto = model(nodes, {"x": (1, 6, 12, 12)}, constants={**constants, **flat})
    calls = built.count_ops(proto)
    assert sum(calls[name] for name in named(calls, "matmul", "add")) == 2
    built.assert_like_oracle(proto)


@pytest.mark.parametrize("root", [np.float32(2), np.full((1, 1, 1), 2, np.float32)])
def test_what_is_computed_on_tokens_of_an_image_is_so_by_its_convolution(root):
    nodes = [
        node("Conv", "x w", "c", pads=[1] * 4),
        node("Reshape", "c flat", "f"),
        node("Transpose", "f", "t", perm=[0, 2, 1]),
        node("Div", "t root", "d"),
        node("Erf", "d", "e"),
        node("Mul", "t e", "y"),
    ]
    constants = {"w": randn(0, 16, 6, 3, 3), "flat": np.array([1, 16, -1]), "root": root}
    proto = model(nodes, {"x": (1, 6, 5, 7)}, constants=constants)
    calls = built.count_ops(proto)
    (name,) = named(calls, "erf")
    assert "conv2d_divide_erf_multiply" in name
    assert transposes(calls) == 1  # of the input
    built.assert_like_oracle(proto)


@pytest.mark.parametrize(
    "shape", [(2, 8, 42), (2, 8, 6, 7), (2, 8, 3, 14), (2, 4, 2, 42), (2, 336)]
)
def test_an_image_may_be_reshaped_in_any_way(shape):
    nodes = [node("Reshape", "c s", "r"), node("Neg", "r", "n"), node("Mul", "n five", "y")]
    five = np.full((1, 1, 1, 1, 1), 5, np.float32)
    built.assert_like_oracle(after(*nodes, s=np.array(shape), five=five))


@pytest.mark.parametrize("groups", [16, 4])
def test_an_image_that_is_normalised_stays_in_one_layout(groups):
    nodes = [
        node("Conv", "x w", "c", pads=[1] * 4),
        node("Reshape", "c flat", "f"),
        node("InstanceNormalization", "f s b", "n"),
        node("Reshape", "n back", "r"),
        node("Conv", "r w2", "y", pads=[1] * 4),
    ]
    constants = {"w": randn(0, 16, 6, 3, 3), "s": randn(1, groups), "b": randn(2, groups)}
    constants |= {"flat": np.array([0, groups, -1]), "back": np.array([1, 16, 12, 12])}
    constants["w2"] = randn(3, 16, 16, 3, 3)
    proto = model(nodes, {"x": (1, 6, 12, 12)}, constants=constants)
    assert transposes(built.count_ops(proto)) == 2  # of the input and of the output
    built.assert_like_oracle(proto)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_channels_that_are_split_resized_and_joined_are_not_transposed(mode):
    nodes = [
        node("Conv", "x w", "c", pads=[1] * 4),
        node("Split", "c half", "d e", axis=1),
        node("Resize", "d - s", "f", mode=mode),
        node("Resize", "e - s", "g", mode=mode),
        node("Concat", "g f", "h", axis=1),
        node("GlobalAveragePool", "h", "m"),
        node("Flatten", "m", "y"),
    ]
    weights = {"w": randn(0, 16, 6, 3, 3), "s": np.array([1, 1, 2, 2], np.float32)}
    constants = {**weights, "half": np.array([8, 8])}
    proto = model(nodes, {"x": (1, 6, 12, 12)}, constants=constants)
    assert transposes(built.count_ops(proto)) == 1  # of the input
    built.assert_like_oracle(proto)


def test_a_shuffle_of_channels_is_computed_where_they_lie():
    # Once, for the groups: the image is transposed neither before that nor after it.
    calls = built.count_ops(MODELS["shuffled"])
    assert max(name.count("transpose") for name in calls) == 1


def test_bert_has_its_bias_residual_and_gelu_in_its_products():
    calls = built.count_ops(zoo.bert(layers=2, hidden=64, heads=4, sequence=16, vocabulary=100))
    assert sum(calls[name] for name in named(calls, "matmul", "erf")) == 2
    assert sum(calls[name] for name in named(calls, "matmul", "add", "_add")) >= 4
    assert not [name for name in calls if name.startswith(("erf", "multiply"))]


def test_a_small_bert_has_onnx_runtime_s_numbers():
    built.assert_like_oracle(
        zoo.bert(layers=2, hidden=64, heads=4, sequence=16, vocabulary=100, mask=True)
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_pooled_model_is_transposed_in_and_out_only(rank):
    shape = {"kernel_shape": [2] * rank, "strides": [2] * rank}
    assert transposes(built.count_ops(pooled(rank, "MaxPool", **shape))) == 2


def test_a_classifier_is_not_transposed_after_its_pooling():
    proto = after(
        node("GlobalAveragePool", "c", "g"),
        node("Flatten", "g", "f"),
        node("MatMul", "f k", "y"),
        k=randn(0, 8, 4),
    )
    assert transposes(built.count_ops(proto)) == 1


@pytest.mark.parametrize(
    "name",
    [
        *("squeeze and excite", "add channels", "add vector", "concat on 1", "clip both", "pad"),
        *("softmax over channels", "mean over [1] keeping 1", "where", "prelu"),
    ],
)
def test_layout_blind_operators_stay_channels_last(name):
    calls = built.count_ops(MODELS[name])
    assert transposes(calls) + len(named(calls, "reshape")) == 2  # one channel is reshaped


def test_a_model_s_own_transposes_cancel():
    assert transposes(built.count_ops(MODELS["to channels last and back"])) == 2


def test_an_image_of_one_channel_needs_a_view_at_most():
    built.assert_like_oracle(conv(1, 1, 8, 8, kernel=(4, 1, 3, 3)))


@pytest.mark.parametrize("name", ["class", "None", "T", "range"])
def test_an_input_may_have_a_name_that_means_something_in_python(name):
    named = model(
        [node("Conv", f"{name} w", "y")], {name: (1, 6, 8, 8)}, constants={"w": WEIGHTS["w"]}
    )
    assert [one.name for one in built.imported(named).inputs] == [name]
    built.assert_like_oracle(named)


@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16", "INT8", "INT64", "BOOL", "BFLOAT16"])
def test_elements_of_a_constant_are_its_values(kind):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(kind))
    values = np.arange(6).reshape(2, 3).astype(dtype)
    found = elements(relax.const(tvm.runtime.tensor(values)))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


def test_an_angle_of_an_image_is_computed_where_it_lies():
    operators = ["Tan", "Sinh", "Cosh", "Atan", "Asinh"]
    nodes = [node("Conv", "x w", "c", pads=[1] * 4), *(node(one, "c", one) for one in operators)]
    nodes += [node("Sum", " ".join(operators), "s"), node("Conv", "s w2", "y", pads=[1] * 4)]
    constants = {"w": randn(0, 16, 6, 3, 3) * 0.01, "w2": randn(1, 16, 16, 3, 3)}
    proto = model(nodes, {"x": (1, 6, 12, 12)}, constants=constants)
    assert transposes(built.count_ops(proto)) == 2  # of the input and of the output
    built.assert_like_oracle(proto)
