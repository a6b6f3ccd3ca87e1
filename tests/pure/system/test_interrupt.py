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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
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
