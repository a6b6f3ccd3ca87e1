"""A model's builds over time."""

import json

import pytest
from click.testing import CliRunner
from helpers.registry_samples import TARGET, build

from ansor_deploy import cli
from ansor_deploy.registry.store import Registry

DAYS = ("2026-01-31T12:00:00Z", "2026-02-01T12:00:00Z")
BESIDE = {
    "peer": "ONNX Runtime 1.31.1",
    "ours_ms": 1.0,
    "theirs_ms": 2.0,
    "ratio": 0.5,
    "interval": [0.4, 0.6],
    "turns": 8,
    "verdict": "faster",
    "seen": None,
}
MEMORY = {"library": 5_290_000, "weights": 5_000_000, "workspace": 1_000, "peak": 5_300_000}
MANIFEST = {"speed": {"beside": BESIDE}, "memory": MEMORY}


@pytest.fixture
def path(tmp_path):
    with Registry.open(tmp_path / "r.db", write=True) as registry:
        registry.add_target(TARGET)
        registry.add_build(build(tmp_path / "a.so", "ab" * 32, DAYS[0]))
        registry.add_build(build(tmp_path / "a.so", "cd" * 32, DAYS[1], manifest=MANIFEST))
        registry.add_build(build(tmp_path / "b.so", "ef" * 32, DAYS[0], name="other.onnx"))
    return tmp_path / "r.db"


def history(path, *words):
    return CliRunner().invoke(cli.main, ["history", *words, "--registry", str(path)])


def test_the_newest_comes_first(path):
    lines = history(path, "some/folder/resnet.onnx").stdout.splitlines()
    assert lines[1].split() == [
        *("2026-02-01", "12:00", "board", "cdcdcd", "64", "12.5", "ms", "30.0", "ms", "tuned"),
        *("5.29", "MB", "2.00x", "faster", "(ONNX", "Runtime)"),
    ]
    assert lines[2].startswith("2026-01-31 12:00  board   ababab")
    assert lines[3:] == ["2 builds"]
    assert history(path, "resnet", "--limit", "1").stdout.splitlines()[-1] == "1 build"
    assert "ababab" in history(path, "abab").stdout


def test_json_has_what_was_measured(path):
    first, second = json.loads(history(path, "resnet", "--json").stdout)["builds"]
    assert (first["tuned_ms"], first["beside"], second["beside"]) == (12.5, BESIDE, None)
    assert first["target_name"] == "board"
    assert "manifest" not in first


def test_a_model_without_builds_is_a_usage_error(path):
    found = history(path, "nobody.onnx")
    assert found.exit_code == 2
    assert "has no build of nobody.onnx" in found.stderr
