"""The runtime gets onto a board whole or not at all, whatever happens on the way."""

import os
import shutil
import subprocess
import time
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from helpers.local_board import LocalBoard, LocalConnection, open_site

from ansor_deploy.errors import DeviceError, DeviceLost


class Torn(LocalConnection):
    """Loses the first upload half way."""

    def run(self, command, stdin=b"", timeout=30.0):
        if not stdin:
            return super().run(command, stdin, timeout)
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env
        )
        process.stdin.write(stdin[: len(stdin) // 2])
        process.stdin.flush()
        wait_for(lambda: list(Path(self.env["HOME"]).glob(".cache/ansor-deploy/.upload-*/*")))
        process.kill()
        process.communicate()
        raise DeviceLost("the cable was cut")


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def digests(board):
    return [path.name for path in board.cache.iterdir() if path.is_dir()]


def test_a_torn_upload_is_made_again(tmp_path):
    board = LocalBoard(tmp_path)
    with pytest.raises(DeviceLost, match="cut"):
        open_site("testboard", lambda: Torn(board.env), 1)
    (left,) = digests(board)
    assert left.startswith(".upload-")
    connection = board.connect()
    site = open_site("testboard", lambda: connection, 1)
    site.close()
    assert connection.streams[0].reap() == 0
    (whole,) = digests(board)
    assert left == f".upload-{whole}"


def test_bytecode_comes_with_the_runtime_and_imports_write_none(tmp_path):
    """Python leaves half of a file where the disk is full, and never reads the module again."""
    board = LocalBoard(tmp_path)
    connection = board.connect()
    site = open_site("testboard", lambda: connection, 1)
    assert site.call("ansor_deploy.devices.library_calls:threads", {}, 20) == 1
    site.close()
    connection.streams[0].reap()
    (bundle,) = (board.cache / name for name in digests(board))
    modules = {Path(cache_from_source(str(path))) for path in bundle.rglob("*.py")}
    assert set(bundle.rglob("*.pyc")) == modules


def test_bundles_of_old_versions_are_removed(tmp_path):
    board = LocalBoard(tmp_path)
    for age, name in enumerate("abcd", start=1):
        old = board.cache / (name * 64)
        old.mkdir(parents=True)
        os.utime(old, (time.time() - age * 86400,) * 2)
    connection = board.connect()
    open_site("testboard", lambda: connection, 1).close()
    connection.streams[0].reap()
    whole = [name for name in digests(board) if len(set(name)) > 1]
    assert sorted(digests(board)) == sorted(["a" * 64, "b" * 64, *whole])
    assert len(whole) == 1


class Damaging(LocalConnection):
    """Sends a bundle that is complete, and not the one that was asked for."""

    def run(self, command, stdin=b"", timeout=30.0):
        return super().run(command, stdin[:1000], timeout)


def test_a_damaged_upload_is_refused(tmp_path):
    board = LocalBoard(tmp_path)
    with pytest.raises(DeviceLost, match="torn"):
        open_site("testboard", lambda: Damaging(board.env), 1)
    assert digests(board) == []


@pytest.fixture
def small_disk(tmp_path):
    """A board whose home folder holds 20 MB."""
    board = LocalBoard(tmp_path)
    words = [shutil.which("mount"), "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(board.home)]
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
    yield board
    subprocess.run([shutil.which("umount"), str(board.home)], check=True)


def test_a_full_disk_is_told(small_disk):
    with pytest.raises(DeviceError, match="No space left on device") as caught:
        open_site("testboard", small_disk.connect, 1)
    assert not isinstance(caught.value, DeviceLost)
    assert digests(small_disk) == []


def test_what_a_login_prints_is_no_frame(tmp_path):
    board = LocalBoard(tmp_path)

    class Chatty(LocalConnection):
        def run(self, command, stdin=b"", timeout=30.0):
            return super().run(f"echo Welcome; {command}", stdin, timeout)

        def open(self, command):
            return super().open(f"echo Welcome; {command}")

    connection = Chatty(board.env)
    site = open_site("testboard", lambda: connection, 1)
    assert site.call("ansor_deploy.devices.library_calls:threads", {}, 20) == 1
    site.close()
    connection.streams[0].reap()
