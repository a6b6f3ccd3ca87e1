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

TURNS = """
import os, sys
from ansor_deploy.cli.errors import leave

def run():
    try:
        os.kill(os.getpid(), int(sys.argv[1]))
    except KeyboardInterrupt:
        raise ImportError("initialization failed")

leave(run, [])
"""

IMPORTS = """
import sys, time
from ansor_deploy.cli.errors import leave

def run():
    import half_made
    time.sleep(5)

leave(run, [])
"""

HALF_MADE = """
import os, sys, time
os.kill(os.getpid(), int(sys.argv[1]))
time.sleep(0.2)
print("whole", flush=True)
"""

WAITS = """
import ctypes, sys
from pathlib import Path
from ansor_deploy.ship.outputs.commit import staged
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
        try:
            _, said = begun.communicate(timeout=60)
        finally:
            begun.kill()
    assert begun.returncode == code
    assert "interrupted; what was measured is kept" in said
    assert not list(tmp_path.iterdir())


def ended(script, number, *path):
    """What a script that is sent a signal has said, and its status."""
    return subprocess.run(
        [sys.executable, "-c", script, str(int(number))],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *sys.path])},
    )


def test_an_interrupt_that_a_library_makes_an_error_of_its_own_is_no_bug():
    turned = ended(TURNS, signal.SIGHUP)
    assert turned.returncode == 129
    assert "interrupted" in turned.stderr
    assert "Traceback" not in turned.stderr


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_what_is_being_imported_is_not_left_half_made(number, code, tmp_path):
    (tmp_path / "half_made.py").write_text(HALF_MADE)
    result = ended(IMPORTS, number, tmp_path)
    assert (result.returncode, result.stdout) == (code, "whole\n")
    assert "interrupted" in result.stderr


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_what_was_swallowed_is_heeded_at_the_next_step(number, code):
    result = ended(SWALLOWS, number)
    assert (result.returncode, result.stdout) == (code, "swallowed\n")
    assert "interrupted; what was measured is kept" in result.stderr
