"""Two processes that measure on one machine take turns, and nobody can keep it for ever."""

import fcntl
import os
import pwd
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from ansor_deploy.system import machine_lock
from ansor_deploy.system.lock_file import open_lock

HOLDER = """
import sys, time
from ansor_deploy.system.machine_lock import machine_lock
with machine_lock():
    print(time.monotonic(), flush=True)
    time.sleep(float(sys.argv[1]))
    print(time.monotonic(), flush=True)
"""


def start(seconds):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLDER, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def test_the_second_waits_for_the_first():
    first = start(0.5)
    assert first.stdout.readline()
    second = start(0)
    left = float(first.communicate(timeout=60)[0])
    entered, _ = second.communicate(timeout=60)[0].split()
    assert float(entered) >= left
    assert first.returncode == second.returncode == 0


def test_a_killed_holder_leaves_the_way_free():
    first = start(600)
    assert first.stdout.readline()
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert len(start(0).communicate(timeout=60)[0].split()) == 2


KEEPER = """
import os, socket, sys, time
os.setuid(int(sys.argv[3]) if sys.argv[3:] else os.getuid())
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
    lock.bind("\\0" + sys.argv[1])
    if sys.argv[2:]:
        lock.listen()
    print(flush=True)
    time.sleep(600)
"""


@pytest.fixture
def name(monkeypatch, tmp_path):
    """A lock of this test's own, for which others are waited for no longer than half a second."""
    monkeypatch.setattr(machine_lock, "_NAME", f"\0{tmp_path}")
    monkeypatch.setattr(machine_lock, "_SAY_SECONDS", 0.1)
    monkeypatch.setattr(machine_lock, "_PATIENCE_SECONDS", 0.5)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return str(tmp_path)


@contextmanager
def kept(*words):
    """A process that keeps the lock; its id.

    words: the lock's name, any word where it listens, the number of a user that it runs as.
    """
    command = [sys.executable, "-I", "-c", KEEPER, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd="/") as process:
        try:
            assert process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def test_who_has_it_is_said_and_waited_for(name):
    said = []
    with kept(name, "listens") as holder:

        def pause(seconds):
            if len(said) == 4:  # 0.1, 0.2, 0.4 and 0.8 s: longer than for others
                os.kill(holder, signal.SIGKILL)
            threading.Event().wait(seconds)

        with machine_lock.machine_lock(said.append, pause):
            pass
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert (
        said[3]
        == f"process {holder} of {user} measures on this machine; waiting for it (1 s so far)"
    )


def test_a_wait_can_be_ended(name):
    def pause(seconds):
        raise KeyboardInterrupt

    with kept(name), pytest.raises(KeyboardInterrupt), machine_lock.machine_lock(pause=pause):
        pass


def test_what_keeps_the_name_and_nothing_else_is_passed(name):
    """As another user could; from then on those who measure take turns by a file of this user's."""
    said, inside = [], threading.Event()
    with kept(name), machine_lock.machine_lock(said.append):
        assert said[-1].startswith("another process measures on this machine; measuring beside it")

        def second():
            with machine_lock.machine_lock():
                inside.set()

        thread = threading.Thread(target=second)
        thread.start()
        assert not inside.wait(1.5)
    thread.join(20)
    assert inside.is_set()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_user_is_named_and_not_waited_for_without_end(name):
    said = []
    with kept(name, "listens", "65534") as holder, machine_lock.machine_lock(said.append):
        who = f"process {holder} of {pwd.getpwuid(65534).pw_name}"
    assert said[-1].startswith(f"{who} measures on this machine; measuring beside it")


@pytest.mark.parametrize("taken", ["link", "pipe", "folder", "another's"])
def test_a_lock_file_is_no_other_thing(tmp_path, taken):
    path = tmp_path / "lock"
    if taken == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif taken == "pipe":
        os.mkfifo(path)
    elif taken == "folder":
        path.mkdir()
    elif os.geteuid() == 0:
        path.touch()
        os.chown(path, 65534, 65534)
    else:
        pytest.skip("needs root, to be another user")
    with pytest.raises(OSError, match="lock"):
        open_lock(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_file_is_this_users_alone(tmp_path):
    lock = open_lock(tmp_path / "lock")
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    os.close(lock)
