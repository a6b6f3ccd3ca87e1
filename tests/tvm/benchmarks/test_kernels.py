"""The kernels of a small network beside ONNX Runtime's nodes, timed as the benchmark does it."""

import json
import sys

import pytest

from benchmarks import in_network, kernels, peak, zoo


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(zoo, "NETWORKS", {"small": lambda: zoo.squeezenet(size=32, classes=10)})
    monkeypatch.setattr(in_network, "TURNS", 3)
    monkeypatch.setattr(in_network, "BLOCK_SECONDS", 0.01)
    monkeypatch.setattr(peak, "fma_gflops", lambda target, cores: 100.0)


def test_every_convolution_has_its_counterpart(short, tmp_path, monkeypatch, capsys):
    file = tmp_path / "found.json"
    words = ["kernels", "small", "--alone", "--out", str(tmp_path), "--json", str(file)]
    monkeypatch.setattr(sys, "argv", words)
    kernels.main()
    (table,) = json.loads(file.read_text())["networks"]
    assert table["unmatched"] == []
    assert sum(row["calls"] for row in table["rows"]) == 26
    assert all(row["onnxruntime_us"] > 0 for row in table["rows"])
    assert 0 < sum(row["ours_us"] * row["calls"] for row in table["rows"]) < table["kernels_us"]
    assert table["alone"] > 0
    assert all(row["alone_us"] > 0 for row in table["rows"])
    assert "## small" in capsys.readouterr().out


def test_a_name_that_is_none_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kernels", "nonsense"])
    with pytest.raises(SystemExit):
        kernels.main()
    assert "nonsense is no file" in capsys.readouterr().err
