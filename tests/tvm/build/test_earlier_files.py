"""What earlier versions have written still serves: registry, lock and bundle.

tests/assets/before holds what a user had after `tune --lock`, `build --frozen --header` and
`registry export`, made with version 0.1.0 before its code was laid out in rooms. Its product is the
same task today; its softmax is another program since exp is computed on vectors.
"""

import gzip
import json
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from helpers.cli_inside import answer, program

from ansor_deploy.registry.lock import read_lock
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.store import Registry
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


@pytest.fixture
def product(folder, locked):
    """The one of these records that serves a task of today, by the key of its workload."""
    tasks = json.loads((folder / "net.json").read_text())["tasks"]
    return {task["key"]: locked[task["key"]] for task in tasks if task["op"] == "matmul"}


def planned(folder, registry):
    """Id of the record of each task of a plan that has one, by its key."""
    rows = answer(folder, *PLAN, registry)["tasks"]
    return {row["key"]: row["record"] for row in rows if row["record"]}


def test_a_registry(folder, board, product):
    assert planned(folder, "registry.db") == product
    with Registry.open(folder / "registry.db") as registry:
        assert registry.verify() == []
        stats = registry.stats()
        assert (stats["records"], stats["measurements"]) == (7, 6)
        assert len(list(registry.measurements(board.fingerprint))) == 6
    assert planned(folder, "registry.db") == product


def test_a_lock(folder, board, locked, product):
    lock = read_lock(folder / "net.lock", board, TVM)
    assert {key.workload: record.id for key, record in lock.records.items()} == locked
    assert program(folder, "build", "net.onnx", *FROZEN, "-o", "new.so").returncode == 5
    asked = ("--target", "board.toml", "--lock", "net.lock", "--trials", "0", "-o", "new.so")
    assert answer(folder, "build", "net.onnx", *asked, "--registry", "new.db")["hits"] == 1
    manifest = json.loads((folder / "new.json").read_text())
    used = {task["key"]: task["record"] for task in manifest["tasks"]}
    with Registry.open(folder / "new.db", write=False) as registry:
        for key in product:  # it was measured here, and so has another time
            (best,) = registry.top(TaskKey(key, board.fingerprint), TVM, 1)
            assert (best.id, best.claimed) == (used[key], False)


def test_a_bundle(folder, product):
    assert answer(folder, "registry", "import", "all.jsonl", "--registry", "new.db")["new"] == 7
    assert planned(folder, "new.db") == product
