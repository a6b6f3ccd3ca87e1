"""The benchmark of quantised networks: one verifies, one does not, one cannot be made."""

import json

import pytest
from click.testing import CliRunner

from benchmarks.networks import int8, side_by_side, zoo
from benchmarks.networks.onnx_net import Net


def squeezed():
    """A module of SqueezeNet and its head, of which the whole has eight."""
    net = Net("squeezed", 0)
    x = net.relu(net.conv(net.input("data", (1, 3, 16, 16)), 8, (1, 1), bias=True))
    wide = [net.relu(net.conv(x, 16, (k, k), bias=True)) for k in (1, 3)]
    x = net.node("Concat", *wide, channels=32, axis=1)
    x = net.node("GlobalAveragePool", net.conv(x, 10, (1, 1), bias=True))
    return net.model(net.node("Flatten", x), "prob", (1, 10))


@pytest.fixture
def short(monkeypatch):
    """Short races, in this process, of a small network."""
    monkeypatch.setattr(side_by_side, "TURNS", 2)
    monkeypatch.setattr(side_by_side, "BLOCK_SECONDS", 0.01)
    monkeypatch.setattr(side_by_side, "PAUSE_SECONDS", 0.0)

    def race(paths, peers, threads):
        libraries = [path.with_suffix(".so") for path in paths.values()]
        runs = side_by_side.load(paths["int8"], libraries, peers, threads, compares=False)
        return side_by_side.race(runs, threads).to_json()

    monkeypatch.setattr(int8, "_race", race)
    monkeypatch.setattr(zoo, "NETWORKS", {"squeezenet": squeezed})


def _run(folder, *words):
    words = [*words, "--out", str(folder / "out"), "--json", str(folder / "rows.json")]
    ended = CliRunner().invoke(int8.command, [*words, "--threads", "1"])
    rows = json.loads((folder / "rows.json").read_text())["networks"]
    return ended, {row["network"]: row for row in rows}


def test_a_quantised_network_is_built_and_verified_and_timed_later(short, tmp_path, monkeypatch):
    ended, rows = _run(tmp_path, "squeezenet:qdq", "--no-race")
    assert ended.exit_code == 0, ended.output
    assert "verified in" in ended.stdout
    row = rows["squeezenet:qdq"]
    assert row["races"] == []
    assert row["refused"] == ""
    monkeypatch.delattr(int8, "_build")  # what was built is not built again
    ended, rows = _run(tmp_path, "squeezenet:qdq")
    assert ended.exit_code == 0, ended.output
    row = rows["squeezenet:qdq"]
    assert row["seconds"] > 1
    assert set(row["races"][0]["ms"]) == {"int8", "float32", "onnxruntime"}
    assert "1 threads beside onnxruntime: geometric mean" in ended.stdout
    assert "1 threads beside float32: geometric mean" in ended.stdout


def test_what_fails_says_why_and_ends_no_run(short, tmp_path, monkeypatch):
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    build = int8._build

    def wrong(model, *options):
        if "--no-verify" not in options:
            raise int8.subprocess.CalledProcessError(6, "build", stderr="error: it differs")
        return build(model, *options)

    monkeypatch.setattr(int8, "_build", wrong)
    ended, rows = _run(tmp_path, "broken:qdq", "squeezenet:dynamic", "--folder", str(tmp_path))
    assert ended.exit_code == 1
    assert "broken:qdq" in ended.stdout
    assert rows["broken:qdq"]["refused"].startswith("not quantised: ")
    # Refused as wrong, it is timed all the same.
    assert rows["squeezenet:dynamic"]["refused"] == "(6) error: it differs"
    assert len(rows["squeezenet:dynamic"]["races"]) == 1


@pytest.mark.parametrize("name", ["lenet:qdq", "squeezenet", "squeezenet:int4"])
def test_a_subject_that_there_is_not_is_refused(name, tmp_path):
    ended = CliRunner().invoke(int8.command, [name, "--out", str(tmp_path)])
    assert ended.exit_code == 2
    assert f"no {name}; it is NETWORK:WAY" in ended.stderr
