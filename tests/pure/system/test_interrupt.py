"""An interrupt that somebody swallowed ends the command all the same."""

import os
import signal
import subprocess
import sys

import pytest

SWALLOWS = """
import os, sys, time
from ansor_deploy.cli.errors import leave
from ansor_deploy.system.interrupt import check

def run():
    try:
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(5)
    except KeyboardInterrupt:
        print("swallowed")
    check()
    print("went on")

leave(run, [])
"""

WAITS = """
import ctypes, sys
from pathlib import Path
from ansor_deploy.artifact.outputs import staged
from ansor_deploy.cli.errors import leave

def run():
    with staged(Path(sys.argv[1]), lambda path: None):
        print("begun", flush=True)
        lock = ctypes.create_string_buffer(64)
        for _ in range(2):  # for ever, in C: no handler of Python's comes in between
            ctypes.CDLL(None).pthread_mutex_lock(lock)

leave(run, [])
"""
ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_a_call_that_does_not_return_is_ended(number, code, tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", WAITS, str(tmp_path / "net.so")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env=env, **pipes) as begun:
        assert begun.stdout.readline() == "begun\n"
        assert list(tmp_path.iterdir())
        begun.send_signal(number)
        _, said = begun.communicate(timeout=60)
    assert begun.returncode == code
    assert "interrupted; what was measured is kept" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_what_was_swallowed_is_heeded_at_the_next_step(number, code):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", SWALLOWS, str(int(number))],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    assert (ended.returncode, ended.stdout) == (code, "swallowed\n")
    assert "interrupted; what was measured is kept" in ended.stderr
