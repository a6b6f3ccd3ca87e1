"""Networks are quantised in each way, alike each time, and get the weights that they lack."""

import json
from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

from benchmarks.networks import filled, zoo
from benchmarks.networks.quantised import quantised


@pytest.fixture(scope="module")
def small():
    return zoo.squeezenet(size=64, classes=10)


def _operators(model):
    return Counter(node.op_type for node in model.graph.node)


def _zero_points(model, op):
    """The types of the zero points of its QuantizeLinear nodes."""
    kinds = {one.name: one.data_type for one in model.graph.initializer}
    return {kinds[node.input[2]] for node in model.graph.node if node.op_type == op}


@pytest.mark.parametrize(
    ("way", "op", "zero"),
    [
        ("qdq", "QuantizeLinear", {TensorProto.UINT8}),
        ("qdq-s8", "QuantizeLinear", {TensorProto.INT8}),
        ("qoperator", "QLinearConv", None),
        ("dynamic", "ConvInteger", None),
    ],
)
def test_each_way_writes_its_operators_over_signed_weights(way, op, zero, small):
    made = quantised(small, way)
    assert _operators(made)[op] >= 26
    assert zero is None or _zero_points(made, op) == zero
    filters = [one for one in made.graph.initializer if len(one.dims) == 4]
    assert {one.data_type for one in filters} == {TensorProto.INT8}
    session = onnxruntime.InferenceSession(made.SerializeToString())
    (found,) = session.run(None, {"data": np.ones((1, 3, 64, 64), "float32")})
    assert found.shape == (1, 10, 1, 1)
    assert np.isfinite(found).all()


def test_the_seed_decides_the_scales(small):
    one, same, other = (quantised(small, "qdq", seed) for seed in (0, 0, 1))
    assert one == same != other


def test_an_old_opset_is_raised_so_that_channels_have_scales(small):
    old = onnx.ModelProto()
    old.CopyFrom(small)
    old.opset_import[0].version = 12  # in which its operators are the same
    made = quantised(old, "qdq")
    scales = [one for one in made.graph.initializer if one.name.endswith("_scale")]
    assert max(numpy_helper.to_array(one).size for one in scales) > 10


def test_weights_that_a_file_lacks_are_drawn_as_they_were(tmp_path, small):
    lacking = onnx.ModelProto()
    lacking.CopyFrom(small)
    weight = lacking.graph.initializer[0]
    told = {
        weight.name: ["float32", list(weight.dims), 3.0, 0.5, -1.0],
        "variance": ["float32", [4000], 0.0, 1.0, 0.0],
    }
    del lacking.graph.initializer[0]
    lacking.metadata_props.add(key=filled.PROPERTY, value=json.dumps(told))
    onnx.save(lacking, tmp_path / "a.onnx")
    model = filled.load(tmp_path / "a.onnx")
    values = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    drawn, variance = values[weight.name], values["variance"]
    assert drawn.shape == tuple(weight.dims)
    assert abs(drawn.mean() - 3) < 0.1
    assert abs(drawn.std() - 0.5) < 0.1
    assert variance.min() >= 0
    assert not model.metadata_props
    assert model == filled.load(tmp_path / "a.onnx") != filled.load(tmp_path / "a.onnx", seed=1)
