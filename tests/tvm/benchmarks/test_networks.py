"""The benchmark of whole networks, with one that builds and one that does not."""

import json
import sys

import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks import networks, side_by_side


def _save(path, op):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy")
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


@pytest.fixture
def short(monkeypatch):
    """Short races, in this process."""
    monkeypatch.setattr(side_by_side, "TURNS", 2)
    monkeypatch.setattr(side_by_side, "BLOCK_SECONDS", 0.01)
    monkeypatch.setattr(side_by_side, "PAUSE_SECONDS", 0.0)

    def race(model, libraries, peers, threads):
        runs = side_by_side.load(model, libraries, peers, threads)
        return side_by_side.race(runs, threads).to_json()

    monkeypatch.setattr(networks, "_race", race)


def _run(monkeypatch, folder, *words):
    words = [str(folder), "--out", str(folder / "out"), "--efforts", "untuned", *words]
    monkeypatch.setattr(sys, "argv", ["networks", *words])
    with pytest.raises(SystemExit) as ended:
        networks.main()
    return ended.value.code


def test_a_network_that_fails_is_a_row_and_ends_no_run(short, tmp_path, monkeypatch, capsys):
    _save(tmp_path / "good.onnx", "Softmax")
    _save(tmp_path / "refused.onnx", "NonZero")
    file = tmp_path / "rows.json"
    words = ["--only", "refused,good", "--threads", "1", "--json", str(file)]
    monkeypatch.setattr(networks, "_peak", lambda args: 100.0)
    assert _run(monkeypatch, tmp_path, *words) == 1
    printed = capsys.readouterr().out
    assert "failed (3)" in printed
    assert "NonZero" in printed
    (row,) = json.loads(file.read_text())["networks"]
    assert (row["network"], row["batch"]) == ("good", 1)
    assert row["builds"]["untuned"]["trials"] == 0
    assert min(row["memory_mb"].values()) > 0
    assert set(row["races"][0]["ms"]) == {"untuned", "onnxruntime"}
    # What is known is not measured again.
    monkeypatch.setattr(networks, "_build", None)
    assert _run(monkeypatch, tmp_path, *words[2:], "--only", "good") == 0
    assert "geometric mean" in capsys.readouterr().out


def test_an_unknown_network_is_refused(tmp_path, monkeypatch, capsys):
    assert _run(monkeypatch, tmp_path, "--only", "dcgan,lenet") == 2
    assert "no network lenet" in capsys.readouterr().err
