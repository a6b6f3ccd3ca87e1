"""Other engines, and ONNX Runtime itself as one."""

import sys

import numpy as np
import onnx
import pytest
from helpers import graphs

from ansor_deploy.errors import ModelError, UsageError
from ansor_deploy.ship.race import peers
from ansor_deploy.ship.race.peers import open_peer
from ansor_deploy.system.worker import Worker


def test_onnx_runtime_is_a_peer(tmp_path):
    onnx.save(graphs.batches(), tmp_path / "net.onnx")
    feed = {"x": np.ones((2, 3, 8, 8), np.float32)}
    for source in (tmp_path / "net.onnx", graphs.batches().SerializeToString()):
        peer = open_peer("onnxruntime", source, 1)
        assert peer.name.startswith("ONNX Runtime 1.")
        (expected,) = graphs.run(graphs.batches(), feed)
        np.testing.assert_allclose(peer.call(feed)[0], expected, rtol=1e-3, atol=1e-3)
        assert len(peer.times(feed, 3)) == 3


def test_openvino_is_a_peer():
    pytest.importorskip("openvino")
    feed = {"x": np.ones((2, 3, 8, 8), np.float32)}
    (actual,) = open_peer("openvino", graphs.batches().SerializeToString(), 1).call(feed)
    (expected,) = graphs.run(graphs.batches(), feed)
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


def test_a_model_that_an_engine_refuses():
    with pytest.raises(ModelError, match="onnxruntime refuses the model"):
        open_peer("onnxruntime", b"no model", 1)


def test_inputs_that_an_engine_refuses():
    peer = open_peer("onnxruntime", graphs.batches().SerializeToString(), 1)
    with pytest.raises(ModelError, match=r"ONNX Runtime 1\..* cannot run the model: .*rank"):
        peer.times({"x": np.ones(3, np.float32)}, 1)


CRASHING = """
import os
import onnxruntime
onnxruntime.InferenceSession = lambda *words, **more: os.abort()
"""


def test_an_engine_that_ends_its_process_while_it_is_profiled(tmp_path, monkeypatch):
    (tmp_path / "crashing.py").write_text(CRASHING)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(peers, "Worker", lambda preload: Worker("crashing"))
    feed = {"x": np.ones((2, 3, 8, 8), np.float32)}
    with pytest.raises(ModelError, match="onnxruntime crashes with the model: SIGABRT"):
        peers.profile_parts(graphs.batches(), 1, feed, 0.0)


def test_an_engine_that_is_not_installed(monkeypatch):
    def missing():
        raise ImportError

    monkeypatch.setitem(peers._NAMES, "openvino", missing)
    with pytest.raises(UsageError, match="openvino is not installed") as caught:
        open_peer("openvino", b"", 1)
    assert "ansor-deploy[openvino]" in caught.value.hint
