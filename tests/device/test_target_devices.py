"""A target's devices are found: commands that name a target run on them, over a real SSH server."""

import json

import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.device_runs import COMMAND

from ansor_deploy.devices.inventory import Inventory

BUILD = (*COMMAND, "--target", "board.toml")

pytestmark = pytest.mark.slow


def ran_on(folder):
    return json.loads((folder / "out/net.json").read_text())["ran_on"]


def said(result):
    return " ".join(result.stderr.split())


def test_a_build_runs_on_the_device_of_its_target(made, folder):
    board = made("pi")
    assert answer(folder, "plan", "net.onnx", "--target", "board.toml")["devices"] == ["pi"]
    assert "board (pi)" in program(folder, "plan", "net.onnx", "--target", "board.toml").stdout
    assert board.bundles == []  # a plan asks no board
    first = answer(folder, *BUILD, "--trials", "4")
    assert (first["ran_on"], ran_on(folder)) == ("pi", "pi")
    assert len(board.bundles) == 1
    assert answer(folder, "bench", "out/net.so", "--time", "1s")["runs"] >= 3
    board.sshd.stop()
    refused(program(folder, "bench", "out/net.so"), 4, "nothing listens", "--no-device")
    assert answer(folder, "bench", "out/net.so", "--time", "0.1s", "--no-device")["runs"] >= 3
    assert answer(folder, *BUILD, "--trials", "0")["up_to_date"]
    assert answer(folder, *BUILD, "--trials", "0", "--no-device", "-o", "x.so")["ran_on"] == "host"
    refused(program(folder, *BUILD, "--trials", "0", "-o", "y.so"), 4, "pi: nothing", "--no-device")
    refused(program(folder, *BUILD, "--no-device", "--device", "pi"), 2, "contradict")


def test_those_that_cannot_be_reached_are_named_and_the_rest_goes_on(made, folder):
    made("away").sshd.stop()
    made("there")
    made("sick")
    Inventory.find().quarantine("sick", "it miscomputes")
    result = program(folder, *BUILD, "--trials", "2")
    assert result.returncode == 0, result.stderr
    assert ran_on(folder) == "there"
    assert "away: nothing listens at" in said(result)
    assert "sick is left out" in said(result)
    assert "it miscomputes" in said(result)


def test_a_frozen_build_asks_for_no_device(made, folder):
    made("pi").sshd.stop()
    words = ("--target", "board.toml", "--lock", "r.lock")
    trials = ("--trials", "48", "--effort", "quick", "--registry", "r.db")
    answer(folder, "tune", "net.onnx", "--no-device", *trials, *words)
    frozen = answer(folder, "build", "net.onnx", "-o", "f.so", "--frozen", *words)
    assert frozen["verification"]["verified"]
