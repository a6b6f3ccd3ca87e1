"""ONNX Runtime in a process of its own: what becomes of crashes, loops and a lost process."""

import os
import signal
from contextlib import contextmanager, suppress
from threading import Event, Thread

import numpy as np
import pytest
from helpers.graphs import model, node, typed
from onnx import TensorProto, helper

from ansor_deploy.errors import ModelError
from ansor_deploy.ship.verify import session
from ansor_deploy.ship.verify.session import Session

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def opened(proto, as_written=False):
    return Session(lambda: proto, 1, as_written=as_written)


def doubled():
    return model([node("Add", "x x", "y")], {"x": (2, 3)})


def endless():
    """A loop of as many turns as a number of 64 bits has."""
    kinds = [("i", TensorProto.INT64, ()), ("c", TensorProto.BOOL, ()), ("a", 1, (2, 3))]
    ends = [helper.make_tensor_value_info(*kind) for kind in kinds]
    made = [helper.make_tensor_value_info(*kind) for kind in kinds[1:]]
    made[0].name, made[1].name = "on", "more"
    body = [node("Identity", "c", "on"), node("Add", "a a", "more")]
    loop = node("Loop", "turns true x", "y", body=helper.make_graph(body, "body", ends, made))
    known = {"turns": np.int64(2**63 - 1), "true": np.True_}
    return typed([loop], {"x": X}, {"y": X}, known)


def killed():
    """Kill the process, as the system does where memory runs out."""
    os.kill(session._worker()._process.pid, signal.SIGKILL)


def test_outputs_are_those_of_onnx_runtime():
    made = opened(doubled()).run({"x": X})
    np.testing.assert_array_equal(made["y"], X + X)


def test_a_process_that_is_gone_is_started_anew():
    first, second = opened(doubled()), opened(doubled())
    for _ in range(2):
        killed()
        for one in (first, second):
            np.testing.assert_array_equal(one.run({"x": X})["y"], X + X)


@contextmanager
def crashing():
    """The process gets the signal of a wrong address again and again."""
    over = Event()

    def send():
        while not over.wait(0.2):
            if (worker := session._worker())._ready:
                with suppress(ProcessLookupError):
                    os.kill(worker._process.pid, signal.SIGSEGV)

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_crash_with_and_without_optimisations_is_said_with_its_signal():
    loop, says = opened(endless()), r"ONNX Runtime crashes when it (run|load)s the model: SIGSEGV"
    with crashing(), pytest.raises(ModelError, match=f"{says}.*also without") as refused:
        loop.run({"x": X})
    assert "--no-verify" in refused.value.hint


def test_a_run_without_an_end_is_ended(monkeypatch):
    loop = opened(endless())
    other = opened(doubled())
    monkeypatch.setattr(session, "SECONDS", 0.3)
    with pytest.raises(ModelError, match="ONNX Runtime does not end when it runs") as refused:
        loop.run({"x": X})
    assert "--no-verify" in refused.value.hint
    monkeypatch.undo()
    assert other.run({"x": X})
