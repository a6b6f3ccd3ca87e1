"""The benchmark networks are valid, repeatable, and give numbers worth comparing."""

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import TensorProto

from benchmarks.networks import light, zoo

SMALL = {
    "resnet50": lambda seed=0: zoo.resnet50(size=32, width=8, blocks=(1, 2), seed=seed),
    "mobilenet_v2": lambda seed=0: zoo.mobilenet_v2(width=0.25, size=64, seed=seed),
    "resnet3d18": lambda seed=0: zoo.resnet3d18(frames=4, size=16, width=8, seed=seed),
    "dcgan": lambda seed=0: zoo.dcgan(ngf=8, seed=seed),
    "bert": lambda seed=0: zoo.bert(2, 64, 2, 16, vocabulary=100, seed=seed),
    "bert_masked": lambda seed=0: zoo.bert(2, 64, 2, 16, vocabulary=100, mask=True, seed=seed),
    "vit_tiny": lambda seed=0: zoo.vit_tiny(size=32, layers=2, hidden=48, seed=seed),
    "squeezenet": lambda seed=0: zoo.squeezenet(size=64, classes=10, seed=seed),
}


def _inputs(model, seed=0):
    """Seeded inputs that the model can take: normal values, token ids, an all-ones mask."""
    rng = np.random.default_rng(seed)
    values = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name == "attention_mask":
            values[value.name] = np.ones(shape, "int64")
        elif value.type.tensor_type.elem_type == TensorProto.INT64:
            values[value.name] = rng.integers(0, 100, shape, "int64")
        else:
            values[value.name] = rng.standard_normal(shape, dtype="float32")
    return values


def _run(model, values):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, values)[0]


@pytest.mark.parametrize("name", SMALL)
def test_outputs_are_finite_and_of_sane_size(name):
    model = SMALL[name]()
    output = _run(model, _inputs(model))
    assert list(output.shape) == [
        dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim
    ]
    assert np.isfinite(output).all()
    assert 1e-3 < output.std() < 10


@pytest.mark.parametrize("name", SMALL)
def test_the_seed_decides_the_bytes(name):
    build = SMALL[name]
    first = build().SerializeToString(deterministic=True)
    assert first == build().SerializeToString(deterministic=True)
    assert first != build(seed=1).SerializeToString(deterministic=True)


@pytest.mark.parametrize("name", SMALL)
def test_outputs_depend_on_the_inputs(name):
    model = SMALL[name]()
    one, other = (_run(model, _inputs(model, seed)) for seed in (0, 1))
    assert np.abs(one - other).max() > 1e-3


def test_a_masked_token_does_not_matter():
    model = SMALL["bert_masked"]()
    values = _inputs(model)
    values["attention_mask"][0, -1] = 0
    before = _run(model, values)
    values["input_ids"][0, -1] = (values["input_ids"][0, -1] + 1) % 100
    after = _run(model, values)
    np.testing.assert_allclose(before[:, :-1], after[:, :-1], atol=1e-5)


def test_batch_norms_are_left_to_the_tool():
    ops = {node.op_type for node in SMALL["mobilenet_v2"]().graph.node}
    assert {"BatchNormalization", "Clip", "Conv"} <= ops


def test_a_light_model_gets_weights_of_its_own():
    model = light.load("light_squeezenet")
    onnx.checker.check_model(model)
    (given,) = model.graph.input
    filters = [one for one in model.graph.initializer if len(one.dims) == 4]
    values = [onnx.numpy_helper.to_array(one) for one in filters]
    assert all(0.5 < one.std() * (one[0].size / 2) ** 0.5 < 2 for one in values)
    assert given.name not in {one.name for one in model.graph.initializer}
    assert model == light.load("light_squeezenet") != light.load("light_squeezenet", seed=1)


def test_a_network_is_written_by_its_name(monkeypatch, tmp_path):
    monkeypatch.setitem(zoo.NETWORKS, "dcgan", SMALL["dcgan"])
    ended = CliRunner().invoke(zoo.command, ["dcgan", str(tmp_path / "net.onnx")])
    assert ended.exit_code == 0, ended.output
    assert onnx.load(tmp_path / "net.onnx") == SMALL["dcgan"]()
