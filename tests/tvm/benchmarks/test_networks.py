"""The benchmark of whole networks, with one that builds and one that does not."""

import json

import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from benchmarks.networks import side_by_side, whole
from benchmarks.networks.whole import python as run_python


def _save(path, op, opset=17):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy")
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


@pytest.fixture
def short(monkeypatch):
    """Short races, in this process; of a build, none."""
    monkeypatch.setattr(side_by_side, "TURNS", 2)
    monkeypatch.setattr(side_by_side, "BLOCK_SECONDS", 0.01)
    monkeypatch.setattr(side_by_side, "PAUSE_SECONDS", 0.0)

    def race(model, libraries, peers, threads):
        runs = side_by_side.load(model, libraries, peers, threads)
        return side_by_side.race(runs, threads).to_json()

    def python(*words, **environment):
        beside = ["--beside", "none"] if "build" in words else []
        return run_python(*words, *beside, **environment)

    monkeypatch.setattr(whole, "_race", race)
    monkeypatch.setattr(whole, "python", python)


def _run(folder, *words):
    words = [str(folder), "--out", str(folder / "out"), "--efforts", "untuned", *words]
    return CliRunner().invoke(whole.command, words)


def test_a_network_that_fails_is_a_row_and_ends_no_run(short, tmp_path, monkeypatch):
    _save(tmp_path / "good.onnx", "Softmax")
    _save(tmp_path / "refused.onnx", "RandomNormalLike", opset=10)
    file = tmp_path / "rows.json"
    words = ["--only", "refused,good", "--threads", "1", "--json", str(file)]
    monkeypatch.setattr(whole, "_peak", lambda out: 100.0)
    ended = _run(tmp_path, *words)
    assert ended.exit_code == 1, ended.output
    assert "failed (3)" in ended.stdout
    assert "RandomNormalLike" in ended.stdout
    (row,) = json.loads(file.read_text())["networks"]
    assert (row["network"], row["batch"]) == ("good", 1)
    assert row["builds"]["untuned"]["trials"] == 0
    assert min(row["memory_mb"].values()) > 0
    assert set(row["races"][0]["ms"]) == {"untuned", "onnxruntime"}
    # What is known is not measured again.
    monkeypatch.setattr(whole, "_build", None)
    again = _run(tmp_path, *words[2:], "--only", "good")
    assert again.exit_code == 0
    assert "geometric mean" in again.stdout


def test_an_unknown_network_is_refused(tmp_path):
    ended = _run(tmp_path, "--only", "dcgan,lenet")
    assert ended.exit_code == 2
    assert "no network lenet" in ended.stderr
