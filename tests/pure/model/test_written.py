"""Models that are larger than protobuf allows, in two files; here, the limit is lower."""

import numpy as np
import onnx
import pytest
from helpers.graphs import model, node
from onnx import TensorProto, numpy_helper

from ansor_deploy.model.onnx import written
from ansor_deploy.model.onnx.file import load
from ansor_deploy.ship.verify.session import Session

X = np.arange(64, dtype=np.float32).reshape(1, 64)


@pytest.fixture(autouse=True)
def _low(monkeypatch):
    monkeypatch.setattr(written, "_MOST", 10_000)


def layers():
    """Two products and a shape. The second has its numbers in a field of floats."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 64, 64)).astype(np.float32)
    steps = [node("MatMul", "x a", "h"), node("MatMul", "h b", "z"), node("Reshape", "z s", "y")]
    made = model(steps, {"x": (1, 64)}, constants={"a": a, "b": b, "s": np.array([64])})
    for tensor in made.graph.initializer:
        if tensor.name == "b":
            tensor.ClearField("raw_data")
            tensor.float_data.extend(b.ravel())
    return made, (X @ a @ b).ravel()


def test_weights_lie_beside_a_large_model_and_are_read_from_there(tmp_path):
    proto, _ = layers()
    path = written.write_model(proto, tmp_path)
    kept = {one.name: one for one in onnx.load(path, load_external_data=False).graph.initializer}
    apart = [name for name, one in kept.items() if one.data_location == TensorProto.EXTERNAL]
    assert apart == ["a"]
    assert path.stat().st_size < 3 * (tmp_path / "weights").stat().st_size
    again = load(path).proto.graph.initializer
    for one, other in zip(again, proto.graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(one), numpy_helper.to_array(other))


def test_a_small_model_is_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "_MOST", 1 << 30)
    proto, _ = layers()
    assert written.write_model(proto, tmp_path).read_bytes() == proto.SerializeToString()
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]


def test_a_large_model_is_an_oracle_too():
    proto, expected = layers()
    made = Session(lambda: proto, 1, as_written=False).run({"x": X})
    np.testing.assert_allclose(made["y"], expected, rtol=1e-4)
