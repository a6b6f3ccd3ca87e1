"""What a layer is said to cost is what the quantiser itself gains by leaving it in float32."""

import numpy as np
import onnx
import pytest
from helpers.graphs import model, node, randn

from ansor_deploy.errors import ModelError, UsageError
from ansor_deploy.quantise.distances import Compared, Sums, spread
from ansor_deploy.quantise.graph import inputs_of, ready
from ansor_deploy.quantise.quantiser import _quantised, answer

SAMPLES = [{"x": randn(seed, 1, 4, 8, 8)} for seed in range(4)]


def network(outlier=1.0):
    """Three convolutions; the second one's weights are worse in bytes, if there is an outlier."""
    weights = {f"w{at}": randn(at, 4, 4, 3, 3) / 6 for at in range(3)}
    weights["w1"][:, 0, 0, 0] *= outlier
    nodes = [
        node("Conv", "x w0", "a", pads=[1] * 4),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", pads=[1] * 4),
        node("Conv", "c w2", "y", pads=[1] * 4),
    ]
    return model(nodes, {"x": (1, 4, 8, 8)}, constants=weights)


def compared(folder, proto, keep=()):
    prepared = ready(proto, folder)
    made = _quantised(prepared, SAMPLES, keep, folder)
    return Compared(prepared, onnx.load(made))


def test_the_layer_with_the_worst_weights_costs_most_and_leaving_it_is_worth_that(tmp_path):
    first = compared(tmp_path, network(outlier=40.0))
    number, (before,) = first.distances(SAMPLES)
    told = []
    layers = {one.name: one for one in first.layers(SAMPLES, lambda *step: told.append(step))}
    assert number == len(SAMPLES)
    assert told == [("layers", at, len(told)) for at in range(len(told))] != []
    assert max(layers.values(), key=lambda one: one.share).name == "c"
    assert layers["c"].op == "Conv"
    _, (after,) = compared(tmp_path, network(outlier=40.0), ["c"]).distances(SAMPLES)
    # The quantiser takes the ranges anew, so that both are alike and not the same.
    assert 1 - (after.rms / before.rms) ** 2 == pytest.approx(layers["c"].share, abs=0.1)
    assert layers["c"].share > 0.3


def test_a_kept_layer_has_float_weights_and_others_bytes(tmp_path):
    prepared = ready(network(), tmp_path)
    made = onnx.load(_quantised(prepared, SAMPLES, ["a"], tmp_path))
    kinds = {one.name: one.data_type for one in made.graph.initializer}
    assert kinds["w0"] == onnx.TensorProto.FLOAT
    assert kinds["w1_quantized"] == kinds["w2_quantized"] == onnx.TensorProto.INT8
    zeros = {kinds[one.input[2]] for one in made.graph.node if one.op_type == "QuantizeLinear"}
    assert zeros == {onnx.TensorProto.UINT8}


def test_two_layers_with_one_bias_get_one_each_under_names_that_are_free(tmp_path):
    """The quantiser would name the second one b0, as a tensor is called."""
    constants = {"b": randn(0, 4), "v": randn(1, 4, 4, 1, 1), "w": randn(2, 4, 4, 1, 1)}
    nodes = [node("Conv", "x v b", "a"), node("Sigmoid", "a", "b0"), node("Conv", "b0 w b", "y")]
    made = compared(tmp_path, model(nodes, {"x": (1, 4, 8, 8)}, constants=constants))
    _, (distance,) = made.distances(SAMPLES)
    assert distance.rms < 0.1


def test_batch_norms_fold_and_their_layer_goes_by_either_name(tmp_path):
    constants = {"w": randn(0, 4, 4, 3, 3), **dict.fromkeys("sbmv", np.ones(4, "float32"))}
    nodes = [
        node("Conv", "x w", "conv", pads=[1] * 4),
        node("BatchNormalization", "conv s b m v", "y"),
    ]
    prepared = ready(model(nodes, {"x": (1, 4, 8, 8)}, constants=constants), tmp_path)
    assert [one.op_type for one in prepared.proto.graph.node] == ["Conv"]
    assert prepared.left_out(["conv"]) == prepared.left_out(["y"])
    assert prepared.layer(prepared.left_out(["y"])[0]) == "conv"


def test_a_pattern_keeps_all_layers_that_it_matches(tmp_path):
    prepared = ready(network(), tmp_path)
    assert prepared.left_out(["[ab]"]) == prepared.left_out(["a", "b"]) == ["a", "b"]
    with pytest.raises(UsageError, match=r"no layer 'head\*'"):
        prepared.left_out(["a", "head*"])


def test_a_layer_that_there_is_not_is_refused_with_the_nearest_one(tmp_path):
    prepared = ready(
        model([node("Relu", "x", "block1_relu")], {"x": (1, 4)}, ["block1_relu"]), tmp_path
    )
    with pytest.raises(UsageError, match="no layer 'block1_rely'") as refused:
        prepared.left_out(["block1_rely"])
    assert "did you mean 'block1_relu'?" in refused.value.hint


def test_with_layer_norms_only_products_are_quantised(tmp_path):
    constants = {"w": randn(0, 8, 8), "g": np.ones(8, "float32")}
    nodes = [
        node("LayerNormalization", "x g", "n"),
        node("MatMul", "n w", "p"),
        node("Add", "p x", "y"),
    ]
    prepared = ready(model(nodes, {"x": (1, 4, 8)}, constants=constants), tmp_path)
    samples = [{"x": randn(seed, 1, 4, 8)} for seed in range(2)]
    made = onnx.load(_quantised(prepared, samples, [], tmp_path))
    makers = {name: one for one in made.graph.node for name in one.output}
    (product,) = (one for one in made.graph.node if one.op_type == "MatMul")
    assert {makers[name].op_type for name in product.input} == {"DequantizeLinear"}
    (add,) = (one for one in made.graph.node if one.op_type == "Add")
    assert "x" in add.input
    assert add.output[0] == "y"


def test_an_old_model_is_raised_and_a_quantised_one_refused(tmp_path):
    old = network()
    old.opset_import[0].version = 11
    made = _quantised(ready(old, tmp_path), SAMPLES, [], tmp_path)
    assert onnx.load(made).opset_import[0].version >= 13
    with pytest.raises(ModelError, match="quantised already: it has DequantizeLinear"):
        ready(onnx.load(made), tmp_path)


def test_shapes_that_a_model_leaves_open_come_from_the_command():
    proto = model([node("Relu", "x", "y")], {"x": ("n", 4)})
    assert inputs_of(proto, {})[0].shape == (None, 4)
    assert inputs_of(proto, {"x": (2, 4)})[0].shape == (2, 4)


def test_a_refusal_is_an_answer(tmp_path):
    onnx.save(model([node("Relu", "x", "y")], {"x": (1, 4)}), tmp_path / "m.onnx")
    np.savez(tmp_path / "s.npz", z=randn(0, 1, 4))
    asked = {"model": str(tmp_path / "m.onnx"), "samples": str(tmp_path / "s.npz"), "shapes": {}}
    said = answer({**asked, "keep_float": [], "output": str(tmp_path / "o.onnx")})
    kind, text, hint, file = said["refused"]
    assert (kind, text) == ("UsageError", "the model has no input 'z'")
    assert hint == "the model takes: x 1x4 float32"
    assert file == str(tmp_path / "s.npz")


def test_sums_are_of_squares_and_of_rows():
    sums = Sums()
    sums.add(np.asarray([[1.0, 2.0], [3.0, 1.0]]), np.asarray([[1.0, 2.0], [3.0, 4.0]]))
    found = sums.distance("y")
    assert found.rms == pytest.approx((9 / 30) ** 0.5)
    assert (found.max_abs_err, found.same_top) == (3.0, 0.5)
    sums.add(np.asarray([np.nan, 1.0]), np.asarray([1.0, 1.0]))
    assert sums.distance("y").rms is None


def test_samples_are_spread_over_all_of_them():
    assert spread(range(100), 4) == [0, 25, 50, 75]
    assert spread(range(3), 8) == [0, 1, 2]
