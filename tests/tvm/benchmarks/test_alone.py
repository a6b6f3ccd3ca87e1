"""The kernels of a small network as candidates and in the network, timed as the benchmark does."""

import json

import onnx
from click.testing import CliRunner

from benchmarks.networks import alone
from benchmarks.networks.onnx_net import Net


def test_every_kernel_is_timed_by_itself_and_in_the_network(monkeypatch, tmp_path):
    net = Net("small", seed=0)
    x = net.relu(net.conv(net.input("data", (1, 16, 6, 6)), 32, (1, 1)))
    x = net.node("Softmax", net.conv(x, 32, (3, 3)), axis=1)
    onnx.save(net.model(x, "out", (1, 32, 6, 6)), tmp_path / "small.onnx")
    monkeypatch.setenv("TVM_NUM_THREADS", "1")  # which the benchmark sets
    monkeypatch.setattr(alone, "SECONDS", 0.1)
    monkeypatch.setattr(alone, "BLOCK_SECONDS", 0.01)
    file = tmp_path / "found.json"
    words = [str(tmp_path / "small.onnx"), "--out", str(tmp_path), "--json", str(file)]
    ended = CliRunner().invoke(alone.command, words)
    assert ended.exit_code == 0, ended.output
    assert "## small" in ended.stdout
    table = json.loads(file.read_text())["small"]
    assert {row["calls"] for row in table["rows"]} == {1}
    assert len([row for row in table["rows"] if "conv2d" in row["task"]]) == 2
    assert all(min(row["alone_us"], row["network_us"]) > 0 for row in table["rows"])
    assert 0 < table["kernels"] < 2
    assert table["alone"] > 0
