"""A large file that nobody touched is not read again; one that was touched in any way is."""

import hashlib
import os
import time

import pytest

from ansor_deploy.system import known_digest
from ansor_deploy.system.known_digest import known_sha256


@pytest.fixture
def reads(monkeypatch):
    """The files that are read. All are large, and at rest at once."""
    found = []

    def read(path):
        found.append(path.name)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(known_digest, "_LARGE", 1)
    monkeypatch.setattr(known_digest, "_AT_REST", -1.0)
    monkeypatch.setattr(known_digest, "file_sha256", read)
    return found


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(b"before")
    return path


def digest(content):
    return hashlib.sha256(content).hexdigest()


def test_it_is_read_once(file, reads):
    assert known_sha256(file) == known_sha256(file) == digest(b"before")
    assert reads == ["weights"]


def test_equal_size_and_time_are_not_taken_for_equal_content(file, reads):
    known_sha256(file)
    was = file.stat()
    time.sleep(0.02)  # more than a tick of the kernel's clock
    file.write_bytes(b"after!")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert known_sha256(file) == digest(b"after!")


def test_another_file_in_its_place_is_read(file, reads, tmp_path):
    known_sha256(file)
    (tmp_path / "other").write_bytes(b"after!")
    (tmp_path / "other").replace(file)
    assert known_sha256(file) == digest(b"after!")


def test_what_was_touched_a_moment_ago_is_not_noted(file, reads, monkeypatch):
    monkeypatch.setattr(known_digest, "_AT_REST", 60.0)
    known_sha256(file)
    known_sha256(file)
    assert reads == ["weights"] * 2


def test_a_note_that_is_damaged_counts_for_nothing(file, reads):
    known_sha256(file)
    for damage in (b"", b"\xff" * 9, b"x" * 5000):
        known_digest._note(file).write_bytes(damage)
        assert known_sha256(file) == digest(b"before")


def test_where_nothing_can_be_noted_it_is_read(file, reads, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc")
    assert known_sha256(file) == known_sha256(file) == digest(b"before")
    assert len(reads) == 2


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        known_sha256(tmp_path / "nothing")
