"""Whether a library is whole, and valid for a machine: told from files, exit codes included."""

import dataclasses
import json
import sys
from pathlib import Path

import msgspec
import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.libraries import HOST, build

from ansor_deploy.devices import probe
from ansor_deploy.devices.facts import Facts
from ansor_deploy.devices.inventory import Inventory, parse_url
from ansor_deploy.devices.known_hosts import HostKey
from ansor_deploy.doctor import artifact
from ansor_deploy.doctor.artifact import check_glibc, check_runtime
from ansor_deploy.doctor.device import check_features
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target


@pytest.fixture
def output(tmp_path):
    build(tmp_path / "m.so")
    return tmp_path / "m.so"


def verified(output, code):
    """The checks' levels by their names, and the same answer as text."""
    result = program(output.parent, "verify", "m.so", "--json")
    assert result.returncode == code, result.stderr
    found = json.loads(result.stdout)
    assert found["ok"] == (code == 0)
    told = program(output.parent, "verify", "m.so").stdout
    for check in found["checks"]:
        assert f"{check['level']:4}  {check['name']}: {check['found']}\n" in told
        assert check["level"] == "ok" or check["remedy"]
    return {check["name"]: check["level"] for check in found["checks"]}


def test_a_whole_library_is_valid_where_it_was_built(output):
    levels = verified(output, 0)
    assert set(levels.values()) == {"ok"}
    assert list(levels) == [
        *("library", "header", "provenance"),
        *("architecture", "word size", "cpu features", "libc", "runtime"),
    ]


@pytest.mark.parametrize(
    ("name", "check"), [("m.so", "library"), ("m.h", "header"), ("m.intoto.json", "provenance")]
)
def test_a_changed_file_is_told(output, name, check):
    content = bytearray(output.with_name(name).read_bytes())
    content[-2] ^= 1
    output.with_name(name).write_bytes(content)
    levels = verified(output, 1)
    assert [name for name, level in levels.items() if level == "FAIL"] == [check]


def test_a_changed_manifest_is_told_by_the_statement(output):
    manifest = output.with_suffix(".json")
    manifest.write_text(manifest.read_text().replace("m.onnx", "n.onnx"))
    assert verified(output, 1)["provenance"] == "FAIL"


def test_a_library_runs_without_what_only_tells_of_it(output):
    output.with_suffix(".h").unlink()
    output.with_suffix(".intoto.json").unlink()
    levels = verified(output, 0)
    assert (levels["header"], levels["provenance"]) == ("warn", "warn")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("inputs", "x"),
        ("inputs", [{"name": "x", "shape": [-1], "dtype": "float32"}]),
        ("artifact", {"file": "m.so", "bytes": "many", "sha256": "0" * 64}),
        ("target", {**HOST.to_json(), "cores": 1 << 40}),
        ("target", {**HOST.to_json(), "gpu": "yes"}),
        ("tasks", [[[]]]),
        ("variants", 5),
        ("identity", "\ud800" * 64),
    ],
)
def test_a_manifest_that_says_what_cannot_be_is_none(output, field, value):
    manifest = output.with_suffix(".json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), field: value}))
    for command in ("verify", "run", "bench"):
        refused(program(output.parent, command, "m.so"), 1, "m.json: error: not a manifest")


def test_without_a_manifest_nothing_is_known(output):
    output.with_suffix(".json").unlink()
    result = program(output.parent, "verify", "m.so")
    refused(result, 1, "m.json: error: the manifest of m.so is missing")


def test_another_machine_s_library_is_not_valid_here(tmp_path):
    build(tmp_path / "m.so", load_target("rpi3", [shipped("targets")]))
    levels = verified(tmp_path / "m.so", 4)
    assert (levels["architecture"], levels["library"]) == ("FAIL", "ok")
    assert "cpu features" not in levels  # another target of that kind would not run here either
    told = program(tmp_path, "verify", "m.so").stdout
    assert "remedy: copy it and its manifest to one of aarch64; of one that was added" in told


def test_it_is_said_how_to_run_it_without_a_board(tmp_path, monkeypatch):
    monkeypatch.setattr("ansor_deploy.devices.emulator.shutil.which", lambda name: None)
    build(tmp_path / "m.so", load_target("rpi3", [shipped("targets")]))
    refused(program(tmp_path, "run", "m.so"), 4, "devices add", "ansor-deploy package", "qemu-user")


@pytest.fixture
def boards(tmp_path, monkeypatch):
    """A board of rpi3 that was added; what it says about itself is what this machine does."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    inventory, asked = Inventory.find(), []
    inventory.put(parse_url("pi", "ssh://pi@pi.invalid", "rpi3"))
    inventory.trust("pi", HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519..."))
    there = msgspec.convert({**probe.facts(), "machine": "aarch64"}, Facts)
    monkeypatch.setattr(artifact, "_device_facts", lambda name: asked.append(name) or there)
    return asked


def test_another_machine_s_library_is_checked_on_a_board_that_was_added(tmp_path, boards):
    build(tmp_path / "m.so", load_target("rpi3", [shipped("targets")]))
    found = json.loads(program(tmp_path, "verify", "m.so", "--json").stdout)["checks"]
    assert {"name": "architecture", "level": "ok", "found": "aarch64", "remedy": ""} in found
    assert verified(tmp_path / "m.so", 4)["architecture"] == "ok"  # its features are no Arm's
    assert set(boards) == {"pi"}
    result = program(tmp_path, "verify", "m.so", "--no-device")
    assert "FAIL  architecture" in result.stdout


@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize("command", ["bench", "run"])
def test_a_board_that_is_left_out_is_named_once(tmp_path, monkeypatch, command):
    monkeypatch.setattr("ansor_deploy.devices.emulator.shutil.which", lambda name: None)
    monkeypatch.setattr("ansor_deploy.devices.registered.unfit", lambda *_: "it is too warm")
    build(tmp_path / "m.so", load_target("rpi3", [shipped("targets")]))
    result = program(tmp_path, command, "m.so")
    refused(result, 4, "m.so is built for aarch64", "devices add")
    assert result.stderr.count("pi is left out: it is too warm") == 1


@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize("command", ["bench", "profile"])
def test_a_board_that_was_added_is_named_where_it_has_to_run(tmp_path, command):
    build(tmp_path / "m.so", load_target("rpi3", [shipped("targets")]))
    result = program(tmp_path, command, "m.so", "--threads", 1)
    refused(result, 4, "m.so is built for aarch64", "pi can run it: leave out", "--threads")
    assert "devices add" not in result.stderr


def test_another_runtime_s_library_is_not_valid_here(tmp_path):
    build(tmp_path / "m.so", tvm="0.1.0")
    assert verified(tmp_path / "m.so", 4)["runtime"] == "FAIL"
    assert check_runtime("0.27.9").level == "ok"


def test_an_unknown_device_is_refused(output):
    refused(program(output.parent, "verify", "m.so", "--device", "nobody"), 2, "nobody")


def test_a_level_of_x86_demands_all_of_it():
    target = dataclasses.replace(
        HOST, triple="x86_64-unknown-linux-gnu", cpu="x86-64-v3", vector_bytes=32, features=()
    )
    assert "bmi2" in check_features(["avx2", "fma"], target).found
    named = dataclasses.replace(target, cpu="znver3")
    assert check_features(["avx2", "fma"], named).level == "ok"


@pytest.mark.parametrize(
    ("name", "version", "level"),
    [("glibc", "99.0", "ok"), ("glibc", "2.0", "FAIL"), ("", "", "FAIL")],
)
def test_the_system_must_have_the_symbols(name, version, level):
    assert check_glibc(Path(sys.executable).resolve(), name, version).level == level


def test_words_that_do_not_fit(output):
    refused(program(output.parent, "verify", "m.so", "--rebuild"), 2, "needs the model")
    (output.parent / "m.onnx").touch()
    words = ("verify", "m.so", "m.onnx", "--rebuild")
    refused(program(output.parent, *words), 2, "--lock FILE")
    result = program(output.parent, *words, "--lock", "r.lock")
    refused(result, 1, "m.so: error: it was not built from a lock")


def test_the_answer_is_one_object(output):
    assert answer(output.parent, "verify", "m.so")["ok"]
