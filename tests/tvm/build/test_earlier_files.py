"""What earlier versions have written still serves: registry, lock, bundle, manifest and library.

tests/assets/before holds what a user had after `tune --lock`, `build --frozen --header` and
`registry export`, made with version 0.1.0 before its code was laid out in rooms.
"""

import gzip
import json
import shutil
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.cli_inside import answer, program

from ansor_deploy.artifact.files import read_manifest
from ansor_deploy.devices.machine import runs_here
from ansor_deploy.registry.lock import read_lock
from ansor_deploy.registry.store import Registry
from ansor_deploy.runtime.model import load
from ansor_deploy.target import load_target

BEFORE = Path(__file__).parents[2] / "assets" / "before"
TVM = metadata.version("apache-tvm")
PLAN = ("plan", "net.onnx", "--target", "board.toml", "--min-impact", "0%", "--registry")
FROZEN = ("--target", "board.toml", "--lock", "net.lock", "--frozen", "--header")


@pytest.fixture
def folder(tmp_path):
    """A copy of the files, the registry unpacked."""
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    packed = (tmp_path / "registry.db.gz").read_bytes()
    (tmp_path / "registry.db").write_bytes(gzip.decompress(packed))
    return tmp_path


@pytest.fixture
def board(folder):
    return load_target(str(folder / "board.toml"), [])


@pytest.fixture
def locked(folder):
    """Id of the record of each task that the lock names, by the key of its workload."""
    lines = [json.loads(line) for line in (folder / "net.lock").read_text().splitlines()[1:]]
    return {line["record"]["key"]["workload"]: line["id"] for line in lines}


def planned(folder, registry):
    """Id of the record of each task of a plan, by its key."""
    return {row["key"]: row["record"] for row in answer(folder, *PLAN, registry)["tasks"]}


def test_a_registry(folder, board, locked):
    assert planned(folder, "registry.db") == locked
    with Registry.open(folder / "registry.db") as registry:
        assert registry.verify() == []
        stats = registry.stats()
        assert (stats["records"], stats["measurements"]) == (7, 6)
        assert len(list(registry.measurements(board.fingerprint))) == 6
    assert planned(folder, "registry.db") == locked


def test_a_lock(folder, board, locked):
    lock = read_lock(folder / "net.lock", board, TVM)
    assert {key.workload: record.id for key, record in lock.records.items()} == locked
    made = answer(folder, "build", "net.onnx", *FROZEN, "-o", "new.so")
    assert (made["hits"], made["trials"]) == (2, 0)
    manifest = json.loads((folder / "new.json").read_text())
    assert {task["key"]: task["record"] for task in manifest["tasks"]} == locked


def test_a_bundle(folder, locked):
    assert answer(folder, "registry", "import", "all.jsonl", "--registry", "new.db")["new"] == 7
    assert planned(folder, "new.db") == locked


def test_a_manifest(folder, board, locked):
    manifest = read_manifest(folder / "net.so")
    assert manifest["target"]["fingerprint"] == board.fingerprint
    assert {task["key"]: task["record"] for task in manifest["tasks"]} == locked
    assert program(folder, "verify", "net.so").returncode == 0
    answer(folder, "build", "net.onnx", *FROZEN, "-o", "net.so")
    again = read_manifest(folder / "net.so")
    for unchanged in ("format", "inputs", "outputs", "model", "target", "tasks"):
        assert again[unchanged] == manifest[unchanged]


def test_a_library(folder, board):
    if not runs_here(board):
        pytest.skip("it is for another processor")
    feeds = {"x": np.random.default_rng(0).standard_normal((8, 32), "float32")}
    (wanted,) = graphs.run(onnx.load(folder / "net.onnx"), feeds)
    np.testing.assert_allclose(load(folder / "net.so")(**feeds)["y"], wanted, rtol=1e-5)
