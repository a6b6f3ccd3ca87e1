"""Candidates built here run on an emulated Cortex-A53 over SSH, and harm none but themselves."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers import arm64, graphs
from helpers.built import compiled
from helpers.kernels import ASTRAY, ENDLESS
from helpers.local_board import open_site
from helpers.plain_board import add_board
from tvm import te

from ansor_deploy.codegen.kernels import candidate as codegen
from ansor_deploy.codegen.kernels.signature import signature
from ansor_deploy.devices.inventory import Inventory
from ansor_deploy.devices.remote_model import RemoteModel
from ansor_deploy.devices.ssh import connect
from ansor_deploy.devices.wheels import fetch_wheels
from ansor_deploy.errors import DeviceError, DeviceLost
from ansor_deploy.ship.verify.draws import seeded_inputs
from ansor_deploy.space.canonical_text import canonical_text
from ansor_deploy.space.canonical_text import parse as parse_program
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.worker import WorkerFailure
from ansor_deploy.target import load_target

RPI3 = load_target("rpi3", [shipped("targets")])
RUN = "ansor_deploy.measure.runner:run"
REFERENCE = "ansor_deploy.measure.runner:reference"
CALM, HASTY = 120.0, 3.0  # seconds

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheels():
    """What `devices install` fetches, kept from run to run."""
    folder = arm64.cache() / "wheels"
    fetch_wheels("aarch64", "3.11", folder)
    return folder


@pytest.fixture
def connected(board):
    """A function that connects to the board, whose key is trusted."""
    add_board(board.sshd, "pi", "rpi3")
    inventory = Inventory.find()
    return partial(connect, inventory.get("pi"), inventory)


@pytest.fixture
def site(board, connected, wheels):
    made = open_site("pi", connected, 2, wheels)
    yield made
    made.close()
    assert_idle(board)


def assert_idle(board):
    """Neither agent nor candidate is left, and no file of theirs."""
    deadline = time.monotonic() + 20
    while board.processes() or list((board.root / "root/.cache/ansor-deploy").glob("session-*")):
        assert time.monotonic() < deadline, board.processes()
        time.sleep(0.1)


def candidate(folder, text):
    """A payload for the runner."""
    payload = {"text": text, "how": "plain", "target": RPI3.to_json()}
    built = codegen.build({**payload, "path": str(folder / "candidate.so")})
    return {**built, "signature": signature(parse_program(text)).to_json(), "seed": 0, "best": None}


def times(factor):
    x = te.placeholder((64, 64), name="x")
    y = te.compute((64, 64), lambda i, j: x[i, j] * te.const(factor, "float32"), name="y")
    return canonical_text(te.create_prim_func([x, y]))


def sent(site, payload, expected):
    return {**payload, "path": site.put(Path(payload["path"])), "expected": expected}


def test_candidates_are_checked_and_timed_on_the_board(site, tmp_path):
    expected = site.scratch("expected")
    right = sent(site, candidate(tmp_path, times(2)), expected)
    site.call(REFERENCE, right, CALM)
    found = site.call(RUN, right, CALM)
    assert (found["error"], found["errors"]["max_abs_err"]) == ("", 0)
    assert min(found["seconds"]) > 0
    wrong = sent(site, candidate(tmp_path, times(3)), expected)
    assert site.call(RUN, wrong, CALM)["error"] == "wrong-output"
    assert (site.info.arch, site.info.python[:5]) == ("aarch64", "3.11.")


def test_a_crash_and_an_endless_loop_cost_the_candidate_alone(site, tmp_path):
    expected = site.scratch("expected")
    right = sent(site, candidate(tmp_path, times(2)), expected)
    site.call(REFERENCE, right, CALM)
    for text, seconds, kind in ((ASTRAY, CALM, "crash"), (ENDLESS, HASTY, "timeout")):
        bad = sent(site, candidate(tmp_path, text), expected)
        with pytest.raises(WorkerFailure) as caught:
            site.call(RUN, bad, seconds)
        assert caught.value.kind == kind
        assert site.call(RUN, right, CALM)["error"] == ""


def test_a_model_on_the_board_agrees_with_numpy(site, tmp_path):
    weight = graphs.randn(0, 32, 16)
    net = [graphs.node("MatMul", "x w", "h"), graphs.node("Relu", "h", "y")]
    proto = graphs.model(net, {"x": (4, 32)}, constants={"w": weight})
    compiled(proto, RPI3).export(tmp_path / "net.so", RPI3)
    tensors = {"x": [4, 32], "y": [4, 16]}
    entries = {n: [{"name": n, "shape": s, "dtype": "float32"}] for n, s in tensors.items()}
    told = {"inputs": entries["x"], "outputs": entries["y"], "target": RPI3.to_json()}
    model = RemoteModel(site, tmp_path / "net.so", told)
    inputs = seeded_inputs(model.inputs, 0)
    expected = np.maximum(inputs["x"] @ weight, 0)
    np.testing.assert_allclose(model(**inputs)["y"], expected, rtol=1e-5, atol=1e-5)
    assert min(model.times(inputs, 3)) > 0


def test_an_agent_that_is_killed_is_a_lost_device(board, connected, wheels):
    site = open_site("pi", connected, 2, wheels)
    for pid in board.processes():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(DeviceLost, match="pi is lost"):
        site.call("ansor_deploy.devices.library_calls:threads", {}, CALM)
    site.close()
    open_site("pi", connected, 2, wheels).close()
    assert_idle(board)


def test_a_lost_connection_ends_the_agent(board, connected, wheels):
    connections = []

    def connecting():
        connections.append(connected())
        return connections[-1]

    site = open_site("pi", connecting, 2, wheels)
    assert board.processes()
    connections[0].close()
    with pytest.raises(DeviceLost):
        site.call("ansor_deploy.devices.library_calls:threads", {}, CALM)
    site.close()
    assert_idle(board)


def test_wheels_that_were_not_fetched_are_asked_for(board, connected, tmp_path):
    with pytest.raises(DeviceError, match="is missing: pi") as caught:
        open_site("pi", connected, 2, tmp_path)
    assert caught.value.hint == "run: ansor-deploy devices install pi"
    assert_idle(board)
