"""The benchmark's own arithmetic, with a library that takes a known time."""

import json
import sys
import time
import types

import numpy as np
import onnx
import pytest

from benchmarks import networks, peak, side_by_side, zoo


@pytest.fixture
def quick(monkeypatch):
    """Small networks, short blocks, known limits, and ONNX Runtime in the place of our library."""
    small = {
        "dcgan": lambda: zoo.dcgan(ngf=8),
        "squeezenet": lambda: zoo.squeezenet(size=64, classes=10),
    }
    monkeypatch.setattr(zoo, "NETWORKS", small)
    monkeypatch.setattr(side_by_side, "TURNS", 2)
    monkeypatch.setattr(side_by_side, "BLOCK_SECONDS", 0.01)
    monkeypatch.setattr(side_by_side, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(peak, "measure", lambda: peak.Peak(2, 512, 500.0, 40.0))
    tuned = types.SimpleNamespace(trials=7, tune_seconds=1.5)
    built = types.SimpleNamespace(artifact=None, tuned=tuned)
    monkeypatch.setattr(networks, "_build", lambda path, args: built)
    monkeypatch.setattr(side_by_side, "load_both", _twice)


def _twice(model, library, threads):
    values = zoo.inputs(onnx.load(model))
    return tuple(side_by_side.onnxruntime(model, values, threads) for _ in range(2))


def test_the_numbers_fit_together(quick, tmp_path, monkeypatch, capsys):
    file = tmp_path / "numbers.json"
    monkeypatch.setattr(sys, "argv", ["networks", "--out", str(tmp_path), "--json", str(file)])
    networks.main()
    found = json.loads(file.read_text())
    assert [row["name"] for row in found["networks"]] == ["dcgan", "squeezenet"]
    for row in found["networks"]:
        assert min(row["ours_ms"], row["onnxruntime_ms"], row["ratio"]) > 0
        assert row["peak_share"] > 0
        assert (row["trials"], row["seconds"]) == (7, 1.5)
    ratios = [row["ratio"] for row in found["networks"]]
    assert found["geomean"] == pytest.approx((ratios[0] * ratios[1]) ** 0.5)
    assert "geomean" in capsys.readouterr().out


def test_an_unknown_network_is_refused(quick, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["networks", "--only", "dcgan,lenet"])
    with pytest.raises(SystemExit):
        networks.main()
    assert "no network lenet" in capsys.readouterr().err


def test_the_ratio_is_ours_over_theirs(quick):
    found = side_by_side.beside(lambda: time.sleep(4e-3), lambda: time.sleep(1e-3), threads=1)
    assert found.ours_ms >= 4 > found.onnxruntime_ms >= 1
    low, high = found.quartiles
    assert 1 < low <= found.ratio <= high


def test_a_wrong_library_is_no_figure():
    with pytest.raises(AssertionError, match="squeezenet"):
        side_by_side.compare("squeezenet", [np.zeros(3)], [np.ones(3)])
