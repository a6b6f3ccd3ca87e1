"""The benchmark of a folder of networks, with one that builds and one that does not."""

import json
import sys

import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks import exports, side_by_side


def _save(path, op):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy")
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def test_a_network_that_fails_is_a_row_and_ends_no_run(tmp_path, monkeypatch, capsys):
    _save(tmp_path / "good.onnx", "Softmax")
    _save(tmp_path / "refused.onnx", "NonZero")
    found = side_by_side.Beside(1, 1.0, 2.0, 0.5, (0.4, 0.6))
    monkeypatch.setattr(exports, "_beside", lambda *_: found.__dict__)
    file = tmp_path / "rows.json"
    words = [str(tmp_path), "--out", str(tmp_path / "out"), "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["exports", *words])
    with pytest.raises(SystemExit, match="1"):
        exports.main()
    written = json.loads(file.read_text())
    (row,) = written["networks"]
    assert row["name"] == "good"
    assert {"import", "compile", "verify"} <= set(row["stages"])
    assert min(row["clean_s"], row["file_mb"], row["memory_mb"], row["onnxruntime_mb"]) > 0
    assert "NonZero" in written["failed"]["refused"]
    assert "failed (3)" in capsys.readouterr().out
