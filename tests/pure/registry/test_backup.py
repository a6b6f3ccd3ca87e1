"""`registry backup` copies all while others write, and `registry restore` puts it back."""

import sqlite3
import threading
from contextlib import closing

import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.registry_samples import TVM, fill, key, record

from ansor_deploy.errors import MachineError
from ansor_deploy.registry.store import Registry


@pytest.fixture
def path(tmp_path):
    with Registry.open(tmp_path / "registry.db") as registry:
        fill(registry, 200)
    return tmp_path / "registry.db"


def held(path):
    with Registry.open(path, write=False) as registry:
        return registry.stats()["records"], registry.stats()["measurements"], registry.verify()


def test_a_backup_is_whole_while_others_write(path, tmp_path):
    done = threading.Event()

    def write():
        with Registry.open(path) as registry:
            for number in range(10_000):
                registry.add_batch([], [record(key(0), 1e-3 + number * 1e-6)])
                if done.is_set():
                    return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            answer(tmp_path, "registry", "backup", "b.db", "--registry", path)
            records, measurements, wrong = held(tmp_path / "b.db")
            assert records >= 200
            assert (measurements, wrong) == (200, [])
    finally:
        done.set()
        writer.join()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b.db", "registry.db"]


def test_what_was_lost_is_put_back(path, tmp_path):
    answer(tmp_path, "registry", "backup", "b.db", "--registry", path)
    best = answer(tmp_path, "registry", "query", "--registry", path)
    said = answer(tmp_path, "registry", "restore", "b.db", "--registry", "new.db")
    assert said["file"] == "new.db"
    assert answer(tmp_path, "registry", "query", "--registry", "new.db") == best
    with Registry.open(path) as registry:
        registry.add_batch([], [record(key(0), 1e-9)])
        assert registry.top(key(0), TVM, 1)[0].latency == 1e-9
    words = ("registry", "restore", "b.db", "--registry", path)
    refused(program(tmp_path, *words), 2, "holds 201 records, which would be lost", "--replace")
    answer(tmp_path, *words, "--replace")
    assert answer(tmp_path, "registry", "query", "--registry", path) == best


def test_what_is_not_whole_is_no_backup(path, tmp_path):
    answer(tmp_path, "registry", "backup", "b.db", "--registry", path)
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 2)
        stream.write(b"\xa5" * 8192)
    refused(program(tmp_path, "registry", "backup", "b.db", "--registry", path), 8, "is damaged")
    assert held(tmp_path / "b.db")[2] == []
    refused(program(tmp_path, "registry", "restore", path, "--registry", "n.db"), 8, "is damaged")
    refused(program(tmp_path, "registry", "backup", "c.db", "--registry", "no.db"), 8, "no.db")
    assert not (tmp_path / "c.db").exists()


def test_a_disk_that_is_full_is_said_of_the_copy(path, tmp_path):
    with (
        Registry.open(path, write=False) as registry,
        closing(sqlite3.connect(tmp_path / "copy.db")) as copy,
    ):
        copy.execute("PRAGMA max_page_count = 4")
        with pytest.raises(MachineError, match=r"no space left on device: .*copy\.db"):
            registry.copy_into(copy)
