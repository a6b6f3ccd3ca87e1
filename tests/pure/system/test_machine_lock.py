"""Two processes that measure on one machine take turns."""

import os
import signal
import subprocess
import sys

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
