"""Libraries and an engine that are loaded anew for each turn, in processes of their own."""

import sys
import time
from dataclasses import replace

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.built import HOST
from helpers.cli_inside import program

from ansor_deploy.codegen.model import compile_model
from ansor_deploy.errors import AnsorError, MachineError, ModelError
from ansor_deploy.model.prepare import prepare
from ansor_deploy.runtime.model import Model
from ansor_deploy.ship.race import fresh
from ansor_deploy.ship.race.fresh import engine_side, fresh_turns, library_side
from ansor_deploy.ship.race.timing import _ends, _run_times
from ansor_deploy.ship.race.untuned import compare_speed


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    onnx.save(graphs.dense(16, 32, 8), folder / "net.onnx")
    target = replace(HOST, cores=1)
    model = prepare(folder / "net.onnx", target, [{}])
    compile_model(model.imported, model.by_function, {}, target).export(folder / "net.so", target)
    manifest = {**model.imported.interfaces[0].to_json(), "target": target.to_json()}
    return Model(folder / "net.so", manifest)


def soon():
    return time.monotonic() + 60


def test_a_turn_loads_both_anew(library):
    side = library_side(library)
    with fresh_turns(side, side, [0], 0, soon()) as turns:
        for first in (True, False):
            (turn,) = turns.take(first)
            assert min(turn.ours, turn.theirs, *turn.reference) > 0


def test_an_engine_says_its_name_and_stays_for_some_turns(library):
    model = library.path.with_suffix(".onnx")
    with fresh_turns(
        library_side(library), engine_side("onnxruntime", model, 1), [0], 0, soon()
    ) as t:
        assert t.peer.startswith("ONNX Runtime 1.")
        assert len(t.take(ours_first=True)) == 1
        assert t.take(ours_first=False)


def test_a_model_that_an_engine_refuses(library, tmp_path):
    (tmp_path / "no.onnx").write_bytes(b"no model")
    theirs = engine_side("onnxruntime", tmp_path / "no.onnx", 1)
    with (
        fresh_turns(library_side(library), theirs, [0], 0, soon()) as turns,
        pytest.raises(ModelError, match="onnxruntime refuses the model"),
    ):
        turns.take(ours_first=True)


def test_what_cannot_be_loaded_is_an_error(library, tmp_path):
    (tmp_path / "no.so").write_bytes(b"no library")
    side = {**library_side(library), "library": str(tmp_path / "no.so")}
    with (
        fresh_turns(side, side, [0], 0, soon()) as turns,
        pytest.raises(AnsorError, match="cannot be loaded"),
    ):
        turns.take(ours_first=True)


class Within:
    """A worker that is this process. ends: the number of the signal that ends a turn."""

    def __init__(self, ends):
        self.ends = ends

    def call(self, function, payload, seconds):
        if function.endswith("prepare"):
            return {"answer": "ONNX Runtime"}
        return fresh.turns({**payload, "ends": self.ends})


@pytest.mark.parametrize(
    ("number", "at", "kind", "says"),
    [
        (5, b"\1", ModelError, "onnxruntime crashes with the model: SIGTRAP"),
        (5, b"\0", AnsorError, "it cannot be timed: SIGTRAP"),
        (9, b"\1", MachineError, "a process of the race was killed"),
    ],
)
def test_who_ends_a_turn_is_named(tmp_path, monkeypatch, number, at, kind, says):
    monkeypatch.setattr(
        fresh, "_turns", lambda words: fresh.os.kill(fresh.os.getpid(), words["ends"])
    )
    (tmp_path / "active").write_bytes(at)
    sides = [{}, {"engine": "onnxruntime"}]
    turns = fresh.FreshTurns(Within(number), {"folder": tmp_path, "sides": sides})
    with pytest.raises(kind, match=says) as raised:
        turns.take(ours_first=True)
    assert type(raised.value) is kind


CRASHING = """
import os, signal
__version__ = "2026.1-of-a-day"
class Core:
    def read_model(self, model):
        return model
    def compile_model(self, *words):
        os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_an_engine_that_crashes_is_named(library, tmp_path, monkeypatch):
    (tmp_path / "openvino.py").write_text(CRASHING)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    theirs = engine_side("openvino", library.path.with_suffix(".onnx"), 1)
    with fresh_turns(library_side(library), theirs, [0], 0, soon()) as turns:
        assert turns.peer == "OpenVINO 2026.1"
        with pytest.raises(ModelError, match="openvino crashes with the model: SIGSEGV"):
            turns.take(ours_first=True)


def test_a_crash_takes_down_no_more_than_its_turn(monkeypatch):
    monkeypatch.setattr(fresh, "_turns", lambda payload: fresh.os.kill(fresh.os.getpid(), 9))
    assert fresh.turns({}) == {"ended": "SIGKILL"}
    monkeypatch.setattr(fresh, "_turns", lambda payload: payload["echo"])
    assert fresh.turns({"echo": "here"}) == {"answer": "here"}


def test_a_library_beside_itself(library):
    found = compare_speed(library, library, 0)
    assert found.race.turns >= 10
    assert found.latency_ms in (found.race.ours_ms, found.race.theirs_ms)
    assert found.pairs == found.race.turns


def test_what_takes_longer_than_its_time_runs_once(library):
    assert len(_run_times(library, library.interfaces[0], time.monotonic())) == 1
    assert len(_run_times(library, library.interfaces[0], time.monotonic() + 0.05)) > 1


def test_parts_share_what_is_left(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    ends = _ends(10.0, [1.0, 4.0, 5.0])
    assert next(ends) == 1.0
    clock[0] = 1.0
    assert next(ends) == 5.0
    clock[0] = 11.0
    assert next(ends) == 11.0
    assert list(ends) == []


def test_a_build_says_why_a_model_with_an_empty_output_is_not_raced(tmp_path):
    none = {"none": np.zeros((0, 4), np.float32)}
    nodes = [graphs.node("Relu", "x", "y"), graphs.node("Concat", "none none", "z", axis=0)]
    onnx.save(graphs.model(nodes, {"x": (2, 4)}, ("y", "z"), none), tmp_path / "net.onnx")
    words = ("net.onnx", "--trials", 0, "--registry", "r.db", "--beside", "onnxruntime")
    done = program(tmp_path, "build", *words)
    assert done.returncode == 0, done.stderr
    assert "[beside] not timed beside onnxruntime: 'z' is empty" in done.stderr
