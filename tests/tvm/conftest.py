"""Kernels in the process of a test take one core: beside another process, their threads spin.

And races have a tenth of a second: those beside untuned libraries end at their first look.
"""

import os

import pytest

from ansor_deploy.runtime import native
from ansor_deploy.ship.race import raced, turn, untuned

_SHARED = -3  # TVM's mode "kSpecifyThreadShareAllCore": no thread is pinned


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    processors = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    native.ffi().get_global_func("runtime.config_threadpool")(_SHARED, 1, processors)


@pytest.fixture(scope="session", autouse=True)
def _short_races():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raced, "RACE_SECONDS", 0.1)
        patch.setattr(untuned, "MOST_SECONDS", 0.1)
        patch.setattr(turn, "PAUSE_SECONDS", 0.0)
        yield
