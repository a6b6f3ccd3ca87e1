"""A worker process: it answers, it can be killed, and it says why it died."""

import json
import os
import signal
import sys

import psutil
import pytest
from helpers.processes import wait_until_gone

from ansor_deploy.devices.site import RUNS
from ansor_deploy.errors import AnsorError
from ansor_deploy.measure.build import BUILDS
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


def test_a_worker_that_cannot_start_says_why(monkeypatch, tmp_path):
    (tmp_path / "tvm.py").write_text("raise ImportError('no such luck')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    broken = Worker(preload=BUILDS)
    with pytest.raises(AnsorError, match="no such luck"):
        broken.call("helpers.measure_child:echo", {}, 5)
    broken.close()
