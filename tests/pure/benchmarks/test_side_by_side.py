"""The race's own arithmetic, with runners that take a known time."""

import time

import numpy as np
import onnx
import pytest

from benchmarks.networks import engines, side_by_side, whole, zoo


@pytest.fixture
def short(monkeypatch):
    """Few and short blocks."""
    monkeypatch.setattr(side_by_side, "TURNS", 2)
    monkeypatch.setattr(side_by_side, "BLOCK_SECONDS", 0.01)
    monkeypatch.setattr(side_by_side, "PAUSE_SECONDS", 0.0)


def test_a_ratio_is_one_time_over_another(short):
    runs = {"slow": lambda: time.sleep(4e-3), "fast": lambda: time.sleep(1e-3)}
    found = side_by_side.race(runs, threads=1)
    assert found.milliseconds("slow") >= 4
    assert found.milliseconds("fast") >= 1
    low, middle, high = found.ratio("slow", "fast")
    assert low <= middle <= high
    turns = zip(found.turns["slow"], found.turns["fast"], strict=True)
    assert middle in [pytest.approx(slow / fast) for slow, fast in turns] or low < middle < high
    assert side_by_side.Race.from_json(found.to_json()) == found
    assert found.to_json()["ratios"]["fast"] == (low, middle, high)


def test_a_wrong_library_is_no_figure():
    with pytest.raises(AssertionError, match="squeezenet"):
        side_by_side.compare("squeezenet", [np.zeros(3)], [np.ones(3)])


def test_of_several_peers_the_faster_counts_too():
    turns = {"untuned": (4.0, 4.0), "onnxruntime": (8.0, 8.0), "openvino": (2.0, 2.0)}
    row = {"network": "one", "builds": {"untuned": {}}}
    row["races"] = [side_by_side.Race(1, turns).to_json()]
    printed = whole._means([row])
    assert "untuned beside fastest: geometric mean 2.000, worst 2.000 (one)" in printed
    assert "untuned beside onnxruntime: geometric mean 0.500" in printed


def test_networks_take_a_larger_batch(tmp_path, monkeypatch):
    monkeypatch.setitem(zoo.NETWORKS, "dcgan", lambda: zoo.dcgan(ngf=8))
    path = tmp_path / "model.onnx"
    onnx.save(whole.Subject("dcgan", 3, None).model(), path)
    latent = np.random.default_rng(0).standard_normal((3, 100, 1, 1), dtype="float32")
    (image,) = engines.theirs("onnxruntime", path, {"latent": latent}, 1)()
    assert image.shape == (3, 3, 64, 64)
