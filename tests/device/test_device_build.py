"""The way of a model onto an emulated Cortex-A53, as a user goes it, command by command."""

import json
import os
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers import arm64
from helpers.cli_inside import answer, program
from helpers.cli_process import everything, refused
from helpers.graphs import LIGHT_FOLDER, model, node

from ansor_deploy.devices.inventory import Inventory
from ansor_deploy.devices.wheels import fetch_wheels
from ansor_deploy.registry.store import Registry

NET = "light_squeezenet.onnx"
TRIALS = 4
TARGET = 'extends = "cortex-a53"\ncores = 1\n'
BUILD = ("build", NET, "--device", "pi", "--registry", "r.db", "--trials")
KERNEL = "reference kernel"

pytestmark = pytest.mark.slow


class User:
    """A folder to work in, a home, and commands that are run there."""

    def __init__(self, folder):
        self.folder, home = folder, folder / "home"
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        self.config = home / ".config"
        self.env = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(self.config)}
        self.env["XDG_CACHE_HOME"] = str(home / ".cache")
        self.env.pop("SSH_AUTH_SOCK", None)
        wheels = home / ".cache" / "ansor-deploy" / "wheels"
        wheels.parent.mkdir(parents=True)
        wheels.symlink_to(arm64.cache() / "wheels")
        shutil.copy(LIGHT_FOLDER / NET, folder)
        (folder / "board.toml").write_text(TARGET)

    @property
    def inventory(self):
        return Inventory(self.config / "ansor-deploy" / "devices.json")

    def does(self, *words):
        return program(self.folder, *words, env=self.env)

    def asks(self, *words):
        return answer(self.folder, *words, env=self.env)

    def examines(self):
        checks = self.asks("devices", "doctor", "pi")["checks"]
        return {check["name"]: check for check in checks}

    def manifest(self, name):
        return json.loads((self.folder / name).read_text())


@pytest.fixture(scope="module")
def user(board, tmp_path_factory):
    """Somebody who has added the board."""
    fetch_wheels("aarch64", "3.11", arm64.cache() / "wheels")
    someone = User(tmp_path_factory.mktemp("user"))
    words = ("--name", "pi", "--target", "board.toml", "--identity", board.sshd.key)
    words = ("devices", "add", board.sshd.url, *words, "--fingerprint", board.sshd.fingerprint)
    refused(someone.does(*words[:-2]), 2, "no terminal to ask at", "devices add")
    added = someone.does(*words)
    assert added.returncode == 0, added.stderr + added.stdout
    assert "pi is: aarch64, " in added.stderr
    assert "the runtime on pi (" in added.stderr
    assert "pi is ready" in added.stderr
    assert KERNEL in added.stdout
    return someone


@pytest.fixture(scope="module")
def built(user):
    """The user, who has built the model; and the build's answer."""
    return user, user.asks(*BUILD, TRIALS)


@pytest.fixture(scope="module")
def image(built):
    """A file with the model's input, its name and itself."""
    user, _ = built
    (info,) = user.manifest("light_squeezenet.json")["inputs"]
    array = np.random.default_rng(7).standard_normal(info["shape"], np.float32)
    np.save(user.folder / "image.npy", array)
    return info["name"], array


def test_a_build_measures_and_verifies_on_the_board(built, board):
    user, told = built
    assert (told["trials"], told["ran_on"], told["verify"]["ok"]) == (TRIALS, "pi", True)
    assert told["latency_ms"] > 0
    manifest = user.manifest("light_squeezenet.json")
    assert manifest["ran_on"] == "pi"
    with Registry.open(user.folder / "r.db", write=False) as registry:
        measured = list(registry.measurements(manifest["target"]["fingerprint"]))
    assert len(measured) == TRIALS
    assert {one.provenance.device for one in measured} == {"pi"}
    assert board.processes() == []


def test_the_doctor_runs_a_kernel_once_the_runtime_is_there(built):
    user, _ = built
    kernel = user.examines()[KERNEL]
    assert kernel["level"] in ("ok", "warn")  # an emulated board is not always as fast
    assert kernel["found"].endswith(" ms")


def test_the_library_is_right_on_the_board(built, image):
    user, _ = built
    name, array = image
    words = ("light_squeezenet.so", "--device", "pi")
    user.asks("run", *words, "--input", f"{name}=image.npy", "-o", "out.npz")
    session = onnxruntime.InferenceSession(user.folder / NET, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {name: array})
    with np.load(user.folder / "out.npz") as outputs:
        (output,) = outputs.values()
    np.testing.assert_allclose(output, expected, rtol=1e-3, atol=1e-5)


def test_the_library_is_timed_and_verified_on_the_board(built):
    user, _ = built
    words = ("light_squeezenet.so", "--device", "pi")
    assert user.asks("bench", *words, "--time", "1s")["runs"] >= 1
    rated = user.asks("bench", *words, "--time", "1s", "--rate", "2/s")
    assert rated["arrived"] > rated["missed"]  # one is run, however slow the board is
    assert (rated["streams"], rated["threads"]) == (
        1,
        user.manifest("light_squeezenet.json")["target"]["cores"],
    )
    assert user.asks("verify", "light_squeezenet.so", NET, "--device", "pi")["ok"]


def test_a_library_is_profiled_on_the_board(user):
    nodes = [node("MatMul", "x x", "m"), node("Softmax", "m", "y")]
    onnx.save(model(nodes, {"x": [64, 64]}), user.folder / "small.onnx")
    words = ("small.onnx", "--target", "board.toml", "--registry", "r.db", "--trials", 0)
    user.asks("build", *words, "--no-device")
    words = ("small.so", "--device", "pi", "--trace", "trace.json")
    profile = user.asks("profile", *words)
    computed = [[one["op"] for one in kernel["nodes"]] for kernel in profile["kernels"]]
    assert computed == [["MatMul"], ["Softmax"]]
    assert all(one["ms"] > 0 for one in profile["kernels"])
    assert json.loads((user.folder / "trace.json").read_text())["traceEvents"]


def test_a_build_without_the_board_takes_its_records_and_verifies_a_stand_in(built):
    user, _ = built
    words = ("build", NET, "--target", "board.toml", "--registry", "r.db", "-o", "away.so")
    words += ("--no-device",)
    result = user.does(*words, "--json")
    assert result.returncode == 0, result.stderr
    assert "nothing is tuned or timed" in " ".join(result.stderr.split())
    told, there = json.loads(result.stdout), user.manifest("light_squeezenet.json")
    assert (told["trials"], told["ran_on"], told["verify"]["ok"]) == (0, None, True)
    records = [task["record"] for task in there["tasks"]]
    assert [task["record"] for task in user.manifest("away.json")["tasks"]] == records
    assert set(records) > {"default"}


def test_a_device_of_another_kind_is_refused(built):
    user, _ = built
    before = everything(user.folder)
    says = "device pi is a board, and the build is for rpi3"
    refused(user.does(*BUILD, 0, "--target", "rpi3", "-o", "other.so"), 2, says)
    assert everything(user.folder) == before


def test_a_device_in_quarantine_is_refused_until_the_doctor_lets_it_out(built):
    user, _ = built
    user.inventory.quarantine("pi", "it miscomputes")
    result = user.does(*BUILD, 0, "-o", "other.so")
    refused(result, 4, "pi is in quarantine since", "it miscomputes", "devices doctor pi")
    assert not (user.folder / "other.so").exists()
    user.examines()
    assert user.inventory.reason("pi") is None


def test_an_unchanged_build_does_without_the_board(built, board):
    user, _ = built
    board.stop()
    try:
        assert user.asks(*BUILD, 0)["up_to_date"]
        refused(user.does(*BUILD, 0, "-o", "other.so"), 4, "pi")
    finally:
        board.sshd.start()
