"""Kernels in the process of a test take one core: beside another process, their threads spin.

And nothing is timed for longer than a test needs.
"""

import os

import pytest
from helpers.default_schedules import refused_ones
from helpers.hurry import short_times
from helpers.quick_compiler import quick_compiler
from helpers.turns import made_once
from helpers.warm_workers import kept_warm

from ansor_deploy.runtime import native
from ansor_deploy.system.environment import cache_folder

_SHARED = -3  # TVM's mode "kSpecifyThreadShareAllCore": no thread is pinned


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    processors = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    native.ffi().get_global_func("runtime.config_threadpool")(_SHARED, 1, processors)


@pytest.fixture(scope="module", autouse=True)
def _little_effort(request):
    """LLVM does little for kernels, but where a module's tests are about what it makes of them."""
    if request.node.get_closest_marker("optimised"):
        yield
        return
    with quick_compiler():
        yield


@pytest.fixture(scope="session")
def _refused():
    with refused_ones() as lines:
        yield lines


@pytest.fixture(autouse=True)
def _no_default_is_refused(request, _refused):
    """A kernel that falls back is right, and slow: without this, nothing but a warning says so."""
    yield
    lines = list(_refused)
    _refused.clear()
    if not request.node.get_closest_marker("refuses_defaults"):
        assert lines == []


@pytest.fixture(scope="session", autouse=True)
def _short_times():
    with short_times():
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
