"""What version 0.2.0 has written is read by all that come: registry, bundle, lock and manifest.

tests/assets/kept holds what a build of a product and a softmax left, with 24 trials, and the bundle
of its registry. These files are never made anew.
"""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from ansor_deploy.registry.bundle import read_bundle
from ansor_deploy.registry.lock_text import read_lock
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.store import Registry
from ansor_deploy.registry.transfer import contents
from ansor_deploy.ship.manifest import read_manifest
from ansor_deploy.target import load_target

KEPT = Path(__file__).parents[2] / "assets" / "kept"
BUNDLE = gzip.decompress((KEPT / "records.jsonl.gz").read_bytes())
BOARD = load_target(str(KEPT / "board.toml"), [])
TVM = "0.27.0.post1"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "registry.db"
    path.write_bytes(gzip.decompress((KEPT / "registry.db.gz").read_bytes()))
    return path


@pytest.fixture
def manifest(tmp_path):
    with (tmp_path / "net.so").open("wb") as library:
        library.truncate(json.loads((KEPT / "net.json").read_text())["artifact"]["bytes"])
    shutil.copy(KEPT / "net.json", tmp_path)
    return read_manifest(tmp_path / "net.so")


def test_what_was_written_once_is_read(path, manifest):
    tasks = {task.key: task.record for task in manifest.tasks}
    assert manifest.tool == "0.2.0"
    assert manifest.target.fingerprint == BOARD.fingerprint
    assert manifest.speed.race is not None
    lock = read_lock(KEPT / "net.lock", BOARD, TVM)
    assert {key.workload: record.id for key, record in lock.records.items()} == tasks
    with Registry.open(path) as registry:
        assert registry.verify() == []
        found = registry.best([TaskKey(key, BOARD.fingerprint) for key in tasks], TVM)
        assert {key.workload: record.id for key, record in found.items()} == tasks
        counts = {name: registry.stats()[name] for name in ("measurements", "records", "builds")}
        assert counts == {"measurements": 32, "records": 26, "builds": 2}
        assert len(list(registry.measurements(BOARD.fingerprint))) == 32
    bundle, refusals = contents(path)
    assert (bundle.to_bytes(), refusals) == (BUNDLE, [])
    assert read_bundle(BUNDLE, "records.jsonl") == bundle
