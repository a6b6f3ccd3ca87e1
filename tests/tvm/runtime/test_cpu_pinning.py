"""On which processors the threads of a run worker run."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, os
from pathlib import Path
from ansor_deploy.runtime import cpu_pinning

def places():
    return [sorted(os.sched_getaffinity(int(e.name))) for e in Path("/proc/self/task").iterdir()]

cpu_pinning.use_cores(2)
held = places()
cpu_pinning.release()
print(json.dumps([held, places()]))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_each_thread_of_a_kernel_has_its_own_processor_until_they_are_released():
    made = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    held, released = json.loads(made.stdout)
    first, second, *_ = sorted(os.sched_getaffinity(0))
    assert [first] in held
    assert [second] in held
    assert all(one == sorted(os.sched_getaffinity(0)) for one in released)


LOADED = """
import os
from ansor_deploy.runtime import native

before = os.sched_getaffinity(0)
native.use_cores(1)
assert os.sched_getaffinity(0) == before
"""


def test_a_library_for_one_core_leaves_its_caller_all_processors():
    """Two programs with a thread each would else share the first."""
    subprocess.run([sys.executable, "-c", LOADED], check=True)


IDLE = """
import time
from pathlib import Path
from ansor_deploy.runtime import native

before = set(Path("/proc/self/task").iterdir())
native.use_cores(2)
time.sleep(0.3)
(thread,) = set(Path("/proc/self/task").iterdir()) - before
print(int((thread / "schedstat").read_text().split()[0]) * 1e-9)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_a_thread_without_work_soon_sleeps():
    made = subprocess.run([sys.executable, "-c", IDLE], capture_output=True, check=True)
    assert float(made.stdout) < 0.02  # seconds that it took of a processor
