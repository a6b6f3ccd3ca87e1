"""A worker process: it answers, it can be killed, and it says why it died."""

import errno
import json
import os
import re
import resource
import signal
import sys
import threading

import psutil
import pytest
from helpers.processes import wait_until_gone

from ansor_deploy.devices.site import RUNS
from ansor_deploy.errors import MachineError
from ansor_deploy.measure.builder import BUILDS
from ansor_deploy.system.worker import Worker, WorkerFailure


@pytest.fixture(scope="module")
def worker():
    made = Worker(RUNS)
    made.start()
    yield made
    made.close()


def test_a_worker_answers(worker):
    assert worker.call("helpers.measure_child:echo", {"a": [1, 2.5, None]}, 5) == {
        "a": [1, 2.5, None]
    }


def test_a_raised_error_leaves_the_worker_alive(worker):
    worker.call("helpers.measure_child:echo", {}, 5)
    before = worker._process.pid
    with pytest.raises(WorkerFailure) as caught:
        worker.call("helpers.measure_child:complain", {}, 5)
    assert (caught.value.kind, caught.value.message) == (
        "raised",
        "ValueError: first line | second line",
    )
    (frames,) = caught.value.__notes__  # which the log of a crash has, too
    assert re.search(r'measure_child.py", line \d+, in complain\n', frames)
    assert worker.call("helpers.measure_child:interrupt_itself", {}, 5) == "still here"
    assert worker._process.pid == before


def test_a_crash_names_the_signal_and_the_last_words(worker, capfd):
    with pytest.raises(WorkerFailure) as caught:
        worker.call("helpers.measure_child:crash", {"signal": int(signal.SIGABRT)}, 5)
    assert (caught.value.kind, caught.value.message) == ("crash", "SIGABRT: last words")
    with pytest.raises(WorkerFailure) as caught:
        worker.call("helpers.measure_child:leave", {"status": 3}, 5)
    assert (caught.value.kind, caught.value.message) == ("crash", "exit status 3")
    assert worker.call("helpers.measure_child:echo", {}, 5) == {}
    assert capfd.readouterr() == ("", "")


def test_the_deadline_kills_the_whole_group(worker, tmp_path):
    path = tmp_path / "pids"
    with pytest.raises(WorkerFailure) as caught:
        worker.call("helpers.measure_child:hang_with_a_child", {"path": str(path)}, 0.5)
    assert (caught.value.kind, caught.value.message) == ("timeout", "killed after 0.5 s")
    wait_until_gone(json.loads(path.read_text()))
    assert worker.call("helpers.measure_child:echo", {}, 5) == {}


def test_a_worker_that_died_between_calls_is_replaced(worker):
    worker.call("helpers.measure_child:echo", {}, 5)
    os.kill(worker._process.pid, signal.SIGKILL)
    psutil.Process(worker._process.pid).wait(5)
    assert worker.call("helpers.measure_child:echo", {"b": 1}, 5) == {"b": 1}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_others_kill_is_asked_once_more(worker, tmp_path, number):
    words = {"mark": str(tmp_path / "mark"), "signal": int(number), "always": False}
    assert worker.call("helpers.measure_child:crash_once", words, 5) == "answered"
    with pytest.raises(MachineError, match=f"killed twice, and not by this program: {number.name}"):
        worker.call("helpers.measure_child:crash_once", {**words, "always": True}, 5)
    assert worker.call("helpers.measure_child:echo", {}, 5) == {}


def test_a_worker_that_is_interrupted_is_not_asked_again(worker, tmp_path):
    worker.call("helpers.measure_child:echo", {}, 5)
    threading.Timer(0.5, worker.interrupt).start()
    with pytest.raises(WorkerFailure) as caught:
        worker.call("helpers.measure_child:hang_with_a_child", {"path": str(tmp_path / "p")}, 30)
    assert caught.value.kind == "crash"


@pytest.mark.parametrize(
    ("kind", "words", "says"),
    [
        (
            "OSError",
            (errno.ENOSPC, "No space left on device", "/x/y"),
            "no space left on device: /x/y",
        ),
        ("OSError", (errno.EMFILE, "Too many open files"), "too many open files"),
        ("RuntimeError", ("Cannot open file: /x: Too many open files",), "too many open files"),
        ("RuntimeError", ("std::bad_alloc",), "cannot allocate memory"),
    ],
)
def test_what_the_machine_refuses_is_no_outcome(worker, kind, words, says):
    with pytest.raises(MachineError, match=says):
        worker.call("helpers.measure_child:raise_error", {"kind": kind, "words": words}, 5)


def test_what_the_machine_refuses_is_not_its_own_cause(monkeypatch, tmp_path):
    """Who follows causes to their end, as Dask does, has to find one."""
    (tmp_path / "tvm.py").write_text("raise ImportError('no such luck')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    broken = Worker(preload=BUILDS)
    with pytest.raises(MachineError) as caught:
        broken.call("helpers.measure_child:echo", {}, 5)
    broken.close()
    assert caught.value.__cause__ is not caught.value


def test_memory_beyond_its_own_limit_is_the_functions_fault(worker):
    words = {"bytes": 1 << 31, "limited": True}
    with pytest.raises(WorkerFailure, match="MemoryError"):
        worker.call("helpers.measure_child:take_memory", words, 5)


def test_a_file_beyond_its_own_limit_is_the_functions_fault(worker):
    words = {"kind": "OSError", "words": (errno.EFBIG, "File too large")}
    with pytest.raises(WorkerFailure, match="File too large"):
        worker.call("helpers.measure_child:raise_error", words, 5)


@pytest.mark.parametrize("has_own_limit", [True, False])
def test_memory_that_the_machine_does_not_give_is_the_machines(has_own_limit):
    limited = Worker(RUNS)
    limited.call("helpers.measure_child:echo", {}, 5)
    resource.prlimit(limited._process.pid, resource.RLIMIT_AS, (1 << 30, 1 << 30))
    words = {"bytes": 1 << 31, "limited": has_own_limit}
    with pytest.raises(MachineError, match="ulimit -v"):
        limited.call("helpers.measure_child:take_memory", words, 5)
    limited.close()


def test_a_worker_that_cannot_start_says_why(monkeypatch, tmp_path):
    (tmp_path / "tvm.py").write_text("raise ImportError('no such luck')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    broken = Worker(preload=BUILDS)
    with pytest.raises(MachineError, match="no such luck"):
        broken.call("helpers.measure_child:echo", {}, 5)
    broken.close()
