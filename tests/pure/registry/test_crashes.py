"""Killed processes, failing disks and many writers cost nothing that was acknowledged."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from helpers import registry_samples
from helpers.cli_process import program, refused
from helpers.failing_machine import SCENARIOS
from helpers.registry_samples import fill, key

from ansor_deploy.registry.store import Registry

SAMPLES = registry_samples.__file__
TESTS = Path(SAMPLES).parents[1]

WHOLE = [pytest.mark.slow, pytest.mark.whole]


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


@pytest.mark.parametrize("kills", [8, pytest.param(100, marks=WHOLE)])
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


# A disk that fails, and memory that runs out


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    """Libraries to preload, whose calls fail when they are asked to."""
    folder, compiler = tmp_path_factory.mktemp("faults"), os.environ.get("CC", "cc")
    for name in ("disk", "memory"):
        source, library = TESTS / "assets" / f"failing_{name}.c", folder / f"{name}.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return f"{folder / 'disk.so'} {folder / 'memory.so'}"


def fail_in_turn(faults, folder, *words):
    """What became of the scenarios, the n-th call of which failed, for many n."""
    command = [sys.executable, "-m", "helpers.failing_machine", *map(str, words)]
    environment = {**os.environ, "LD_PRELOAD": faults, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    for one in found.values():
        assert one["calls"] >= 20
        assert one["seen"] > one["tried"] // 2  # the others were made up for
    return found


def sqlite_is_a_library(faults):
    """Whether its allocations can be told from Python's."""
    code = "import ctypes, sqlite3; f = ctypes.CDLL(None); f.memory_fails(ctypes.c_long(0), 0); "
    code += "sqlite3.connect(':memory:').execute('SELECT 1'); print(f.memory_calls())"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "LD_PRELOAD": faults}
    return int(subprocess.run(command, env=environment, capture_output=True, check=True).stdout) > 0


@pytest.mark.parametrize("machine", ["disk", "memory"])
def test_whatever_fails_a_file_is_as_before_or_as_after(tmp_path, faults, machine):
    if machine == "memory" and not sqlite_is_a_library(faults):
        pytest.skip("SQLite is a part of this Python's program")
    assert fail_in_turn(faults, tmp_path, machine, 2, tmp_path).keys() == SCENARIOS.keys()


def sampled(some, most):
    """So many calls, of each kind of fault, and as a run of its own all of them or far more."""
    return [
        pytest.param(some, marks=pytest.mark.slow, id="sampled"),
        pytest.param(most, marks=WHOLE, id="whole"),
    ]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("most", sampled(10, 10_000))
class TestDisk:
    """In a class, as the next is, so that two processes share what takes minutes."""

    def test_whichever_call_fails_a_file_is_as_before_or_as_after(
        self, tmp_path, faults, most, scenario
    ):
        fail_in_turn(faults, tmp_path, "disk", most, tmp_path, scenario)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("most", sampled(25, 200))
class TestMemory:
    def test_whichever_call_fails_a_file_is_as_before_or_as_after(
        self, tmp_path, faults, most, scenario
    ):
        if not sqlite_is_a_library(faults):
            pytest.skip("SQLite is a part of this Python's program")
        fail_in_turn(faults, tmp_path, "memory", most, tmp_path, scenario)


def test_a_full_disk_is_said_to_be_full_and_can_be_gone_on_with(tmp_path):
    """On a file system of one megabyte, in a mount namespace that ends with its process."""
    wrapper = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=1m,mode=700 none {tmp_path}"
    if subprocess.run([*wrapper, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a file system in a namespace")
    command = f"{mount} && exec {sys.executable} {SAMPLES} fill {tmp_path / 'registry.db'}"
    ran = subprocess.run([*wrapper, command], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    full, whole, gone_on = ran.stdout.splitlines()
    assert full.startswith("no space left")
    assert whole == "[]"
    assert gone_on == "one more"


def test_of_a_disk_with_a_bad_sector_the_rest_is_saved(tmp_path, faults):
    path = tmp_path / "registry.db"
    with Registry.open(path) as registry:
        fill(registry, 1000)
    with closing(sqlite3.connect(path)) as raw:
        sql = "SELECT pageno, ncell FROM dbstat WHERE name = 'records' AND pagetype = 'leaf'"
        page, lost = raw.execute(f"{sql} LIMIT 1 OFFSET 3").fetchone()
    bad = {**os.environ, "LD_PRELOAD": faults, "DISK_BAD": str(4096 * (page - 1))}
    words = ("registry", "verify", "--registry", path)
    refused(program(tmp_path, *words, env=bad), 8, "verify --repair")
    repaired = program(tmp_path, *words, "--repair", "--json", env=bad)
    assert repaired.returncode == 0, repaired.stderr
    assert json.loads(repaired.stdout)["repaired"]["kept"]["records"] == 1000 - lost
    assert lost > 0


# Many writers


@pytest.mark.parametrize(("writers", "commits"), [(8, 50), pytest.param(16, 1000, marks=WHOLE)])
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
