"""Builds from a lock: the same bytes anywhere, or an error that names what it lacks."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import onnx
import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.graphs import dense

from ansor_deploy import target
from ansor_deploy.registry.lock_text import read_lock, write_lock
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import detect_host
from ansor_deploy.target import load_target

# Processes of a user's own make the same bytes.
pytestmark = pytest.mark.optimised

OTHER = {"cores": 1 << 10, "l2_bytes": 1 << 10}  # what another host has
HOST = load_target("host", [shipped("targets")])
TVM = metadata.version("apache-tvm")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a model, and a lock with the records of some of its tasks.

    Not by `build --lock`: which of two libraries it ships is a matter of time.
    """
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(dense(16, 32, 24, 8), folder / "model.onnx")
    answer(folder, "tune", "model.onnx", "--registry", "r.db", "--trials", 6)
    tasks = answer(folder, "plan", "model.onnx", "--registry", "r.db")["tasks"]
    keys = [TaskKey(task["key"], HOST.fingerprint) for task in tasks]
    with Registry.open(folder / "r.db", write=False) as registry:
        records = registry.best(keys, TVM)
    defaults = [key.workload for key in keys if key not in records]
    write_lock(folder / "records.lock", HOST, TVM, records.values(), defaults)
    return folder


def test_a_build_keeps_what_it_used(shop):
    words = ("--registry", "r.db", "--trials", 0, "--lock", "kept.lock", "-o", "tuned.so")
    assert answer(shop, "build", "model.onnx", *words)["hits"] == len(locked(shop))
    manifest = json.loads((shop / "tuned.json").read_text())
    used = [task["record"] for task in manifest["tasks"] if task["record"] != "default"]
    kept = read_lock(shop / "kept.lock", HOST, TVM)
    found = {record.id for record in kept.records.values()}
    assert found == (set(used) if manifest["shipped"] == "tuned" else set())
    assert all(kept.names(TaskKey(task["key"], HOST.fingerprint)) for task in manifest["tasks"])


def locked(folder):
    """Keys of the workloads that the lock has records of."""
    lines = (folder / "records.lock").read_text().splitlines()
    found = [json.loads(line)["record"] for line in lines if line.startswith('{"id"')]
    return [record["key"]["workload"] for record in found]


def frozen(folder, output, *words):
    return answer(
        folder, "build", "model.onnx", "--lock", "records.lock", "--frozen", "-o", output, *words
    )


def test_a_frozen_build_needs_no_registry_and_measures_nothing(shop):
    build = frozen(shop, "a.so", "--registry", "none/r.db")
    assert not (shop / "none").exists()
    assert (build["trials"], build["ran_on"]) == (0, None)
    assert build["hits"] == len(locked(shop)) > 1
    verified = answer(shop, "verify", "a.so", "model.onnx")
    assert verified["ok"]


def test_two_frozen_builds_are_the_same_bytes(shop):
    (shop / "deep" / "er").mkdir(parents=True)
    frozen(shop, "b.so")
    env = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    answer(
        shop / "deep",
        *("build", "../model.onnx", "--lock", "../records.lock", "--frozen", "-o", "er/b.so"),
        env=env,
    )
    for name in ("b.so", "b.json"):
        assert (shop / name).read_bytes() == (shop / "deep" / "er" / name).read_bytes()


def test_a_frozen_build_is_the_same_bytes_with_code_from_the_cache(shop, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for folder in ("cold", "warm"):
        (shop / folder).mkdir()
        frozen(shop, f"{folder}/b.so")
        assert len(list((tmp_path / "ansor-deploy" / "objects").iterdir())) > 1
    for path in sorted((shop / "cold").iterdir()):
        assert path.read_bytes() == (shop / "warm" / path.name).read_bytes()


def test_an_unchanged_frozen_build_does_nothing(shop):
    frozen(shop, "c.so")
    before = (shop / "c.so").stat()
    assert frozen(shop, "c.so")["up_to_date"]
    after = (shop / "c.so").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_unchanged_frozen_build_walks_no_trace(shop):
    frozen(shop, "u.so")
    words = ("build", "model.onnx", "--lock", "records.lock", "--frozen", "-o", "u.so")
    command = [sys.executable, "-X", "importtime", "-m", "ansor_deploy", *words]
    result = subprocess.run(command, cwd=shop, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "ansor_deploy.registry.lock_text" in imported
    assert "ansor_deploy.marks.prefetch" not in imported  # what an annotation may be


def test_another_lock_makes_another_library(shop, tmp_path):
    frozen(shop, "d.so")
    lock = (shop / "records.lock").read_text().splitlines(keepends=True)
    keys = locked(shop)
    rest = [line for line in lock if keys[0] not in line and not line.startswith("#")]
    defaults = [json.loads(line)["default"] for line in rest if line.startswith('{"default"')]
    rest = [line for line in rest if not line.startswith('{"default"')]
    rest += [f'{{"default":"{key}"}}\n' for key in sorted([*defaults, keys[0]])]
    (tmp_path / "records.lock").write_text("".join(rest))
    words = ("--lock", tmp_path / "records.lock", "--frozen", "-o", "d.so")
    build = answer(shop, "build", "model.onnx", *words)
    assert (build["up_to_date"], build["hits"]) == (False, len(keys) - 1)


def test_a_task_that_the_lock_lacks_is_named(shop, tmp_path):
    lines = (shop / "records.lock").read_text().splitlines(keepends=True)
    (tmp_path / "records.lock").write_text("".join([lines[0], *lines[3:]]))
    words = ("--lock", tmp_path / "records.lock", "--frozen", "-o", "e.so")
    missing = json.loads(lines[2])["record"]["key"]["workload"][:12]
    remake = f"ansor-deploy tune model.onnx --lock {tmp_path / 'records.lock'}"
    says = ("lacks 1 of the", missing, remake)
    refused(program(shop, "build", "model.onnx", *words), 5, *says)
    assert not (shop / "e.so").exists()


def test_a_lock_brings_what_others_have_tuned(shop, tmp_path):
    for name in ("model.onnx", "records.lock"):
        (tmp_path / name).write_bytes((shop / name).read_bytes())
    words = ("--registry", "new.db", "--trials", 0, "--lock", "records.lock")
    build = answer(tmp_path, "build", "model.onnx", *words)
    assert build["hits"] == len(locked(shop))


def test_frozen_without_a_lock_is_refused(shop):
    refused(program(shop, "build", "model.onnx", "--frozen"), 2, "--lock FILE")
    refused(program(shop, "build", "model.onnx", "--frozen", "--lock", "none.lock"), 5, "none.lock")


def test_a_lock_of_one_model_is_what_its_tasks_need(shop):
    listed = program(shop, "lock", "tasks", "model.onnx", "-o", "model.tasks")
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", "")
    words = ("select", "records.lock", "--tasks", "model.tasks", "-o", "model.lock")
    assert program(shop, "lock", *words).returncode == 0
    assert (shop / "model.lock").read_bytes() == (shop / "records.lock").read_bytes()


def test_a_lock_of_another_host_makes_the_same_bytes_with_a_warning(shop, tmp_path, monkeypatch):
    frozen(shop, "here.so")
    monkeypatch.setattr(target, "detect_host", lambda: {**detect_host(), **OTHER})
    words = ("--lock", "records.lock", "--frozen", "-o", tmp_path / "here.so")
    result = program(shop, "build", "model.onnx", *words)
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stderr.split())
    assert "records.lock was made on another host; cores: " in said
    assert f"{HOST.l2_bytes >> 10} KiB instead of 1 KiB" in said
    for name in ("here.so", "here.json", "here.intoto.json"):
        assert (tmp_path / name).read_bytes() == (shop / name).read_bytes()
    again = program(shop, "build", "model.onnx", *words)
    assert (again.returncode, "another host" in again.stderr) == (0, False)


def test_another_host_tunes_into_no_lock_of_this_one(shop, monkeypatch):
    monkeypatch.setattr(target, "detect_host", lambda: {**detect_host(), "l2_bytes": 1 << 10})
    words = ("--lock", "records.lock", "--registry", "other.db", "--trials", 0)
    says = ("made for another host; L2 cache: ", "tune model.onnx --lock records.lock")
    refused(program(shop, "tune", "model.onnx", *words), 5, *says)


def test_a_lock_of_another_target_is_a_missing_record(shop, monkeypatch):
    words = ("--lock", "records.lock", "--frozen", "--target", "cortex-a53", "-o", "f.so")
    says = ("it is for 'host', and not for cortex-a53; ", "tune model.onnx --target cortex-a53")
    refused(program(shop, "build", "model.onnx", *words), 5, *says)
    monkeypatch.setenv("ANSOR_DEPLOY_TUNE", "make tune-model")
    refused(program(shop, "build", "model.onnx", *words), 5, "again: make tune-model")


def test_the_lock_of_a_host_with_other_instructions_is_not_used(shop, tmp_path):
    other = replace(HOST, triple="aarch64-linux-gnu", cpu="generic", features=("+neon",))
    write_lock(tmp_path / "arm.lock", other, TVM, [], ["0" * 64])
    words = ("--lock", tmp_path / "arm.lock", "--frozen", "-o", "g.so")
    says = ("another host; triple: aarch64", "this machine lacks aarch64", "--target x86-64-v3:4")
    said = program(shop, "build", "model.onnx", *words)
    refused(said, 5, *says)
    assert "used as it is" not in said.stderr


def test_a_frozen_library_is_profiled_beside_the_limits_of_this_machine(shop):
    frozen(shop, "p.so", "--report", "f.html")  # which opens no registry
    page = (shop / "f.html").read_text()
    assert "up to date" not in page
    assert "quantisation" not in page  # which is told of what a build has quantised
    assert json.loads((shop / "p.json").read_text())["target"]["peak_gflops"] is None
    profiled = program(shop, "profile", "p.so", "--time", "0.1s")
    assert profiled.returncode == 0, profiled.stderr
    words = ("report", "p.so", "-o", "p.html", "--registry", "r.db", "--time", "0.1s")
    reported = program(shop, *words)
    assert reported.returncode == 0, reported.stderr
    assert re.search(rf"<dd>{HOST.cores}, \d+ GFLOP/s, \d+ GB/s", (shop / "p.html").read_text())


def test_a_frozen_library_of_another_machine_is_reported(shop, tmp_path):
    manifest = json.loads((shop / "p.json").read_text())
    manifest["target"] |= {"triple": "aarch64-linux-gnu", "name": "board"}
    (tmp_path / "o.so").write_bytes((shop / "p.so").read_bytes())
    (tmp_path / "o.json").write_text(json.dumps(manifest))
    reported = program(tmp_path, "report", "o.so", "-o", "o.html", "--registry", "r.db")
    assert reported.returncode == 0, reported.stderr
    assert f"{HOST.cores}, not known" in (tmp_path / "o.html").read_text()
