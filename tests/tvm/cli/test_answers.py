"""What commands print is what the published schemas say, and nothing beyond."""

from __future__ import annotations

import json
import shutil
from typing import Any

import numpy as np
import onnx
import pytest
from helpers.cli_inside import answer, program
from helpers.graphs import batches, dense
from jsonschema import Draft202012Validator

from ansor_deploy.cli.schemas import DESCRIBED, schema
from ansor_deploy.devices.inventory import Inventory, parse_url
from ansor_deploy.devices.known_hosts import HostKey

SHORT = ("--time", "0.05s")
FEW = ("--trials", 2)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a model, its records, and libraries: tuned, frozen, for two shapes."""
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(dense(16, 32, 8), folder / "model.onnx")
    onnx.save(batches(), folder / "batches.onnx")
    np.save(folder / "x.npy", np.zeros((8, 16), np.float32))
    samples = np.random.default_rng(0).standard_normal((3, 8, 16), np.float32)
    np.savez(folder / "samples.npz", x=samples)
    (folder / "far.toml").write_text('extends = "host"\ncores = 1024\n')  # runs nowhere here
    words = ("model.onnx", "--trials", 6, "--registry", "r.db", "--lock", "records.lock")
    folder.joinpath("tune.json").write_text(json.dumps(answer(folder, "tune", *words)))
    for name, words in BUILDS.items():
        folder.joinpath(f"{name}-answer.json").write_text(
            json.dumps(answer(folder, "build", *words, "-o", f"{name}.so"))
        )
    shutil.copy(folder / "r.db", folder / "copy.db")
    return folder


SHAPES = ("--input-shape", "x=1,3,8,8", "--input-shape", "x=2,3,8,8")
BUILDS = {
    "tuned": ("model.onnx", "--trials", 0, "--registry", "r.db"),
    "untuned": ("model.onnx", "--trials", 0, "--registry", "none.db", "--beside", "none"),
    "frozen": ("model.onnx", "--lock", "records.lock", "--frozen", "--header"),
    "far": ("model.onnx", "--target", "./far.toml", "--registry", "r.db", "--no-verify"),
    "shapes": ("batches.onnx", *SHAPES, "--trials", 0, "--registry", "r.db"),
    "bytes": (
        *("model.onnx", "--precision", "int8", "--calibrate", "samples.npz", "--trials", 0),
        *("--registry", "none.db"),
    ),
}
ANSWERS: dict[str, tuple[Any, ...]] = {
    "plan": ("plan", "model.onnx", "--registry", "r.db"),
    "plan of what is new": ("plan", "model.onnx", "--registry", "none.db"),
    "bench": ("bench", "tuned.so", "--beside", "onnxruntime", *SHORT),
    "bench of streams": ("bench", "tuned.so", "--streams", 2, *SHORT),
    "bench at a rate": ("bench", "tuned.so", "--rate", "50/s", *SHORT),
    "bench of shapes": ("bench", "shapes.so", *SHORT),
    "profile": ("profile", "tuned.so", *SHORT),
    "profile beside another": ("profile", "tuned.so", "--beside", "onnxruntime", *SHORT),
    "profile of shapes": ("profile", "shapes.so", *SHORT),
    "compare": ("compare", "tuned.so", "untuned.so", *SHORT),
    "compare of what does not run here": ("compare", "tuned.so", "far.so"),
    "history": ("history", "model.onnx", "--registry", "r.db"),
    "verify": ("verify", "tuned.so"),
    "verify of a model": ("verify", "tuned.so", "model.onnx"),
    "verify of a lock": (
        "verify",
        "frozen.so",
        "model.onnx",
        "--rebuild",
        "--lock",
        "records.lock",
    ),
    "report": ("report", "tuned.so", "--registry", "r.db", "-o", "r.html", *SHORT),
    "report of bytes": ("report", "bytes.so", "--registry", "r.db", "-o", "b.html", *SHORT),
    "report of another machine": ("report", "far.so", "--registry", "r.db", "-o", "c.html"),
    "run": ("run", "tuned.so", "--input", "x=x.npy"),
    "package": ("package", "tuned.so", "-o", "p.tar.gz"),
    "rules-list": ("rules", "list"),
    "rules-new": ("rules", "new", "halves"),
    "rules-explain": ("rules", "explain", "model.onnx"),
    "completion": ("completion", "bash"),
    "lock of tasks": ("lock", "tasks", "model.onnx", "-o", "m.tasks"),
    "lock of records": ("lock", "select", "records.lock", "--tasks", "m.tasks", "-o", "m.lock"),
    "targets-list": ("targets", "list"),
    "targets-show": ("targets", "show", "host"),
    "targets-show of a GPU": ("targets", "show", "h100"),
    "registry-query": ("registry", "query", "--registry", "r.db"),
    "registry-stats": ("registry", "stats", "--registry", "r.db"),
    "registry-trends": ("registry", "trends", "--registry", "r.db"),
    "registry-diff": ("registry", "diff", "r.db", "copy.db"),
    "registry-best": ("registry", "best", "batches.onnx", "--registry", "r.db"),
    "registry-show": ("registry", "show", "KEY", "--registry", "r.db"),
    "registry-show of a program": ("registry", "show", "KEY", "--script", "--registry", "r.db"),
    "registry-revalidate": ("registry", "revalidate", "model.onnx", "--registry", "r.db"),
    "tune into a pack": ("tune", "model.onnx", *FEW, "--registry", "p.db", "--pack", "pack"),
    "registry-verify": ("registry", "verify", "--registry", "r.db"),
    "registry-gc": ("registry", "gc", "--dry-run", "--registry", "r.db"),
    "registry-vacuum": ("registry", "vacuum", "--registry", "r.db"),
    "registry-backup": ("registry", "backup", "again.db", "--registry", "r.db"),
    "registry-forget": ("registry", "forget", "KEY", "--registry", "copy.db"),
    "registry-given": ("registry", "push", "team", "--registry", "r.db"),
    "registry-taken": ("registry", "pull", "team", "--registry", "other.db"),
    "registry-withdrawn": ("registry", "withdraw", "f" * 64, "team"),
}


def closed(part: Any) -> Any:
    """A schema whose objects have no fields but those that it names."""
    if isinstance(part, list):
        return [closed(one) for one in part]
    if not isinstance(part, dict):
        return part
    made = {key: closed(value) for key, value in part.items()}
    return {**made, "additionalProperties": False} if "properties" in part else made


def assert_described(name, value):
    errors = Draft202012Validator(closed(schema(name))).iter_errors(value)
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


def of_a_task(shop):
    """The beginning of a key."""
    return answer(shop, "plan", "model.onnx", "--registry", "r.db")["tasks"][0]["key"][:8]


@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer(shop, what):
    words = [of_a_task(shop) if word == "KEY" else word for word in ANSWERS[what]]
    assert_described(what.partition(" ")[0], answer(shop, *words))


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_and_its_manifest(shop, name):
    assert_described("build", json.loads((shop / f"{name}-answer.json").read_text()))
    assert_described("manifest", json.loads((shop / f"{name}.json").read_text()))


def test_how_a_model_was_quantised(shop):
    assert_described("quantised", json.loads((shop / "bytes.int8.json").read_text()))


def test_a_tuning_run(shop):
    assert_described("tune", json.loads((shop / "tune.json").read_text()))


def test_a_diagnosis(shop):
    result = program(shop, "doctor", "--json")  # of this machine, whatever it lacks
    assert_described("doctor", json.loads(result.stdout))


def test_a_new_folder(tmp_path):
    onnx.save(dense(16, 32), tmp_path / "model.onnx")
    for expected in (["ansor-deploy.toml", "Makefile", "app.c"], []):
        told = answer(tmp_path, "init", "--yes", "--registry", "r.db")
        assert_described("init", told)
        assert [name for name in expected if name not in told["written"]] == []
    assert told["written"] == []


def test_devices(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    inventory = Inventory.find()
    for name in ("one", "two"):
        inventory.put(parse_url(name, f"ssh://pi@{name}.invalid", "rpi3"))
    inventory.trust("one", HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519..."))
    inventory.quarantine("two", "it is too slow")
    assert_described("devices-list", answer(tmp_path, "devices", "list"))
    assert_described("device", answer(tmp_path, "devices", "remove", "two"))


def test_messages(shop):
    error = program(shop, "build", "none.onnx", "--message-format", "json")
    warned = program(shop, "build", *BUILDS["far"], "--message-format", "json", "-o", "w.so")
    lines = [*error.stderr.splitlines(), *warned.stderr.splitlines()]
    assert {json.loads(line)["level"] for line in lines} == {"error", "warning"}
    for line in lines:
        assert_described("message", json.loads(line))


def test_nothing_is_described_that_is_not_tried():
    tried = {what.partition(" ")[0] for what in ANSWERS}
    apart = {"manifest", "quantised", "build", "tune", "doctor", "message", "init"}
    assert tried | apart | {"devices-list", "device"} == DESCRIBED.keys()
