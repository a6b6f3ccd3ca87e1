"""Killed processes, failing disks and many writers cost nothing that was acknowledged."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import registry_samples
from helpers.registry_samples import key

from ansor_deploy.registry.store import Registry

SAMPLES = registry_samples.__file__
TESTS = Path(SAMPLES).parents[1]
OLD = TESTS / "assets" / "registry-schema-1.db"


def start(*words):
    command = [sys.executable, SAMPLES, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def killed(process, delay):
    """Lines that the process said until it was killed, so long after the first."""
    with process:
        said = [process.stdout.readline()]
        time.sleep(delay)
        process.kill()
        return said + process.stdout.readlines()


# kill -9


@pytest.mark.parametrize("kills", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path, kills):
    path = tmp_path / "registry.db"
    chance, expected = random.Random(kills), 0
    for seed in range(kills):  # one after the other on the same file
        writer = start("write", path, 100000, 10, seed)
        expected += 10 * len(killed(writer, chance.uniform(0, 0.1)))
        with Registry.open(path, write=False) as registry:
            stats = registry.stats()
            assert registry.verify() == []
        assert stats["measurements"] == stats["records"]
        # The last batch may be in the file without having been acknowledged.
        assert stats["records"] in (expected, expected + 10)
        expected = stats["records"]


@pytest.mark.parametrize("kills", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_migration_leaves_the_old_or_the_new_schema(tmp_path, kills):
    chance = random.Random(kills)
    with Registry.open(Path(shutil.copy(OLD, tmp_path / "whole.db"))) as registry:
        whole = {**registry.stats(), "bytes": 0}
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        migrating = start("migrate", shutil.copy(OLD, folder / "old.db"))
        done = killed(migrating, chance.uniform(0, 0.1))
        copies = list(folder.glob("copy-*.db"))
        assert len(copies) >= len(done)
        for copy in sorted(copies, key=os.path.getmtime)[-2:]:
            if copy.stat().st_size < OLD.stat().st_size:
                continue  # killed while the test was still copying it
            with Registry.open(copy) as registry:
                assert registry.verify() == []
                assert {**registry.stats(), "bytes": 0} == whole
        shutil.rmtree(folder)


# A disk that fails


@pytest.fixture(scope="session")
def failing_disk(tmp_path_factory):
    """A library to preload, whose writes and syncs fail when they are asked to."""
    library = tmp_path_factory.mktemp("disk") / "failing_disk.so"
    source = TESTS / "assets" / "failing_disk.c"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("scenario", ["commits", "creation", "migration", "vacuum"])
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_whichever_write_fails_the_file_is_old_or_new(tmp_path, failing_disk, scenario, stride):
    command = [sys.executable, "-m", "helpers.failing_disk", scenario, str(stride), tmp_path]
    environment = {**os.environ, "LD_PRELOAD": str(failing_disk), "PYTHONPATH": str(TESTS)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["calls"] >= 40
    # Two errors, for one call and for all that follow: the user saw each.
    assert found["failed"] == 4 * len(range(1, found["calls"] + 1, stride))


def test_a_full_disk_is_said_to_be_full_and_can_be_gone_on_with(tmp_path):
    """On a file system of one megabyte, in a mount namespace that ends with its process."""
    wrapper = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=1m none {tmp_path}"
    if subprocess.run([*wrapper, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a file system in a namespace")
    command = f"{mount} && exec {sys.executable} {SAMPLES} fill {tmp_path / 'registry.db'}"
    ran = subprocess.run([*wrapper, command], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    full, whole, gone_on = ran.stdout.splitlines()
    assert full.startswith("no space left")
    assert whole == "[]"
    assert gone_on == "one more"


# Many writers


@pytest.mark.parametrize(
    ("writers", "commits"), [(8, 50), pytest.param(16, 1000, marks=pytest.mark.slow)]
)
def test_of_many_writers_none_loses_a_row_or_is_turned_away(tmp_path, writers, commits):
    path = tmp_path / "registry.db"  # which all of them want to create
    writing = [start("write", path, commits, 1, seed) for seed in range(writers)]
    ends = [process.communicate() for process in writing]
    assert [said for _, said in ends if said] == []
    assert [process.returncode for process in writing] == [0] * writers
    with Registry.open(path) as registry:
        stats = registry.stats()
        assert registry.verify() == []
        records = registry.top(key(), "0.27.0", 100_000)
    assert stats["measurements"] == stats["records"] == writers * commits
    wanted = {f"{seed}-{n}" for seed in range(writers) for n in range(commits)}
    assert {record.trace for record in records} == wanted


def test_processes_that_migrate_at_once_keep_one_good_copy(tmp_path):
    path = Path(shutil.copy(OLD, tmp_path / "registry.db"))
    writing = [start("write", path, 5, 1, seed) for seed in range(6)]
    assert [process.communicate()[1] for process in writing] == [""] * 6
    kept = tmp_path / "registry.db.schema-1"
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, kept.name]
    with Registry.open(kept) as before, Registry.open(path) as after:
        assert after.stats()["records"] == before.stats()["records"] + 30
        assert after.verify() == []
