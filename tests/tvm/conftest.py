"""Kernels in the process of a test take one core: beside another process, their threads spin.

And races have a tenth of a second: those beside untuned libraries end at their first look.
"""

import os

import pytest
from helpers.turns import made_once
from helpers.warm_workers import kept_warm

from ansor_deploy.runtime import native
from ansor_deploy.ship.race import quantised, raced, turn, untuned
from ansor_deploy.system.environment import cache_folder

_SHARED = -3  # TVM's mode "kSpecifyThreadShareAllCore": no thread is pinned


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    processors = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    native.ffi().get_global_func("runtime.config_threadpool")(_SHARED, 1, processors)


@pytest.fixture(scope="session", autouse=True)
def _short_races():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raced, "RACE_SECONDS", 0.1)
        patch.setattr(quantised, "SECONDS", 0.1)
        patch.setattr(untuned, "MOST_SECONDS", 0.1)
        patch.setattr(turn, "PAUSE_SECONDS", 0.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _warm_workers():
    with kept_warm():
        yield


@pytest.fixture(scope="session", autouse=True)
def _kernels_compiled_once(_own_home, tmp_path_factory):
    """By whichever process of a run is first; a test about the cache has one of its own."""
    (cache := cache_folder("objects")).parent.mkdir(parents=True, exist_ok=True)
    cache.symlink_to(made_once(tmp_path_factory, "objects", lambda folder: None))
