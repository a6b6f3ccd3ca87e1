"""What a build says and leaves behind when something is in its way."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import registry_samples
from helpers.cli_inside import answer, program
from helpers.cli_process import PROGRAM, everything, heed_permissions, refused
from helpers.graphs import model, node, randn
from helpers.processes import MARK, remaining
from onnx import helper

from ansor_deploy._tvm import VERSION, tvm
from ansor_deploy.codegen.gpu import nvrtc
from ansor_deploy.errors import AnsorError
from ansor_deploy.model.prepare import prepare
from ansor_deploy.registry.store import Registry
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target


def dense(rows=8, size=32):
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    return model(nodes, {"x": (rows, size)}, constants={"w": randn(0, size, size)})


@pytest.fixture
def folder(tmp_path):
    """A folder with a model that builds."""
    onnx.save(dense(), tmp_path / "net.onnx")
    return tmp_path


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A folder with a model, its library, and a registry with its record."""
    place = tmp_path_factory.mktemp("tuned")
    onnx.save(dense(), place / "net.onnx")
    assert build(place, "--trials", "1").returncode == 0
    return place


@pytest.fixture
def copied(tuned, tmp_path):
    return Path(shutil.copytree(tuned, tmp_path / "copied"))


def build(folder, *words, net="net.onnx", output="out/net.so", registry="r.db", **options):
    words = ("--registry", registry, "--effort", "quick", "--beside", "none", *words)
    return program(folder, "build", net, "-o", output, *words, **options)


def untuned(folder, **options):
    return build(folder, "--trials", "0", **options)


# The model


def bad_model(folder, proto, *says):
    onnx.save(proto, folder / "bad.onnx")
    refused(untuned(folder, net="bad.onnx"), 3, *says)
    assert not (folder / "out" / "net.so").exists()


def test_a_model_cut_short(folder):
    whole = (folder / "net.onnx").read_bytes()
    (folder / "net.onnx").write_bytes(whole[: len(whole) // 2])
    refused(untuned(folder), 3, "net.onnx: error: not an ONNX file, or cut short")
    assert not list(folder.rglob("*.so"))


def test_external_data_that_is_missing(folder):
    onnx.save(dense(), folder / "net.onnx", save_as_external_data=True, location="net.data",
              size_threshold=0)  # fmt: skip
    (folder / "net.data").unlink()
    refused(untuned(folder), 3, "net.data")


def test_every_unsupported_operator_is_named(folder):
    nodes = [node("RandomNormalLike", "x", "h"), node("Relu", "h", "y")]
    proto = model(nodes, {"x": (8, 32)}, opset=10)
    proto.graph.node[1].op_type, proto.graph.node[1].domain = "Warp", "acme"
    proto.opset_import.append(helper.make_opsetid("acme", 3))
    says = ("RandomNormalLike  at node h  (ai.onnx 10)", "Warp  at node y  (acme 3)")
    bad_model(folder, proto, *says)


def test_rows_of_a_cache_that_no_context_takes_are_so_many_and_it_is_said(folder):
    nodes = [node("Concat", "past_key_values.0.key k", "present.0.key", axis=2)]
    given = {"past_key_values.0.key": (1, 2, "past", 8), "k": (1, 2, 1, 8)}
    onnx.save(model(nodes, given, ["present.0.key"]), folder / "net.onnx")
    result = untuned(folder)
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stderr.split())
    assert "--input-shape past_key_values.0.key=1,2,127,8 alone, since the cache" in said
    manifest = json.loads((folder / "out" / "net.json").read_text())
    assert manifest["inputs"][0]["shape"] == [1, 2, 127, 8]


def test_a_dynamic_shape_builds_once_it_is_bound(folder):
    onnx.save(dense(rows="batch"), folder / "net.onnx")
    result = build(folder, "--trials", "0", "--input-shape", "x=4,32")
    assert result.returncode == 0, result.stderr
    manifest = json.loads((folder / "out" / "net.json").read_text())
    assert manifest["inputs"][0]["shape"] == [4, 32]


# The target


def test_an_unknown_target_is_answered_with_its_neighbour(folder):
    refused(build(folder, "--target", "cortex-a35"), 2, "cortex-a35", "cortex-a53")


def test_a_target_without_its_compiler(folder, monkeypatch):
    def absent():
        raise AnsorError("NVIDIA's compiler is not installed", "pip install 'ansor-deploy[cuda]'")

    monkeypatch.setattr(nvrtc, "check", absent)
    before = everything(folder)
    refused(build(folder, "--target", "v100"), 1, "not installed", "ansor-deploy[cuda]")
    assert everything(folder) == before


def test_a_library_for_a_gpu_needs_none(folder):
    try:
        nvrtc.check()
    except AnsorError:
        pytest.skip("needs ansor-deploy[cuda]")
    result = build(folder, "--target", "v100")
    assert result.returncode == 0, result.stderr
    assert "nothing is tuned or timed" in " ".join(result.stderr.split())
    manifest = json.loads((folder / "out" / "net.json").read_text())
    assert manifest["verification"]["where"] == "this machine, untuned"
    library = (folder / "out" / "net.so").read_bytes()
    assert b".target sm_70" in library
    assert library.count(b"\x7fELF") > len(manifest["kernels"])


# The output


def test_an_output_below_a_file(folder):
    (folder / "out").write_text("in the way")
    refused(untuned(folder), 2, "out/net.so can be no file: not a directory")
    assert (folder / "out").read_text() == "in the way"


def test_an_output_folder_without_permission(folder):
    (folder / "out").mkdir(mode=0o555)
    refused(untuned(folder, preexec_fn=heed_permissions), 1, "cannot write to out: Permission")
    assert everything(folder / "out") == {}


def test_an_output_that_is_a_folder(folder):
    (folder / "out" / "net.so").mkdir(parents=True)
    refused(untuned(folder), 2, "'out/net.so' is a directory")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    words = [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", place]
    if not mount or subprocess.run(words, check=False).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield place
    subprocess.run([umount, place], check=True)


def test_a_disk_too_small_for_the_library(folder, small_disk):
    onnx.save(dense(size=256), folder / "net.onnx")
    result = untuned(folder, output=small_disk / "net.so")
    refused(result, 9, f"{small_disk}: 0 MB free", "free some")
    assert everything(small_disk) == {}


def test_a_disk_too_small_for_temporary_files_is_not_needed(folder, small_disk):
    onnx.save(dense(size=256), folder / "net.onnx")
    result = untuned(folder, env={**os.environ, "TMPDIR": str(small_disk)})
    assert result.returncode == 0, result.stderr


# The registry


def test_a_registry_that_another_process_holds(folder, monkeypatch):
    monkeypatch.setitem(Registry.open.__func__.__kwdefaults__, "busy_seconds", 0.1)
    hold = [sys.executable, registry_samples.__file__, "hold", str(folder / "r.db")]
    with subprocess.Popen(hold, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        result = untuned(folder)
        holder.kill()
    refused(result, 8, "is in use by")
    assert not Path("/proc/locks").exists() or f"process {holder.pid} " in result.stderr
    assert everything(folder / "out") == {}


def test_a_registry_without_permission(copied):
    (copied / "r.db").chmod(0o444)
    result = untuned(copied, output="new/net.so", preexec_fn=heed_permissions)
    refused(result, 8, "the registry r.db is not writable")
    assert everything(copied / "new") == {}


def test_a_file_that_is_no_registry(folder):
    (folder / "r.db").write_text("a,b\n1,2\n" * 999)
    before = everything(folder)
    refused(untuned(folder), 8, "r.db is damaged: it is not a registry")
    assert {**everything(folder), **before} == everything(folder)
    assert everything(folder / "out") == {}


# Wrong records


def false_record(folder, trace):
    """The registry's record with another trace, said to be the fastest of all."""
    with Registry.open(folder / "r.db") as registry:
        task = the_task(folder)
        (true,) = registry.top(task.key, VERSION, 1)
        registry.add_batch([], [replace(true, trace=trace, seconds=(1e-9,))])


def the_task(folder):
    host = load_target("host", [shipped("targets")])
    (task,) = prepare(folder / "net.onnx", host).tasks
    return task


def rounding_trace(task):
    """A schedule that TVM accepts, but that keeps the sums in 8-bit integers."""
    schedule = tvm.s_tir.Schedule(task.mod)
    block = schedule.get_sblock("b0")
    schedule.cache_write(block, 0, "global")
    schedule.unsafe_set_dtype(block, 0, "int8")
    return dump(schedule.trace)


def test_code_that_others_may_have_put_into_the_registry_runs_nowhere(copied):
    schedule = tvm.s_tir.Schedule(the_task(copied).mod)
    loop, *_ = schedule.get_loops(schedule.get_sblock("b0"))
    schedule.annotate(loop, "pragma_import_llvm", "; ModuleID = 'x'")
    false_record(copied, dump(schedule.trace))
    (copied / "r.db").chmod(0o606)
    refused(untuned(copied), 8, "others may write", "pragma_import_llvm", "chmod go-w")


def test_a_library_that_computes_wrong_is_not_written(copied):
    false_record(copied, rounding_trace(the_task(copied)))
    before = everything(copied / "out")
    refused(untuned(copied), 6, "differs from onnxruntime", "first node that is off", "--retune")
    assert everything(copied / "out") == before
    assert untuned(copied, registry="empty.db").returncode == 0  # as the hint says


@pytest.mark.alone
def test_a_record_that_slows_the_model_down_is_not_shipped(folder):
    onnx.save(dense(size=512), folder / "net.onnx")
    words = ("build", "net.onnx", "-o", "net.so", "--registry", "r.db", "--trials")
    answer(folder, *words, "1")
    false_record(folder, dump(tvm.s_tir.Schedule(the_task(folder).mod).trace))
    assert answer(folder, *words, "0")["verify"]["ok"]
    manifest = json.loads((folder / "net.json").read_text())
    assert manifest["shipped"] == "untuned"
    assert manifest["memory"]["library"] == manifest["artifact"]["bytes"]


def test_a_record_that_does_not_fit_gives_way_to_the_default_schedule(copied):
    false_record(copied, '[[["GetSBlock",[],["nowhere","main"],["b0"]]],[]]')
    result = untuned(copied)
    assert result.returncode == 0, result.stderr
    assert "it does not replay on its program under record" in " ".join(result.stderr.split())
    (task,) = json.loads((copied / "out" / "net.json").read_text())["tasks"]
    assert task["fallback"] == "the default schedule"


# Interruption


def several():
    """Three small tasks that are quick to search."""
    nodes = [
        node("ReduceMax", "x", "a", axes=[1], keepdims=1),
        node("Softmax", "x", "b", axis=1),
        node("ReduceMean", "x", "c", axes=[0], keepdims=1),
    ]
    return model(nodes, {"x": (64, 96)}, outputs=("a", "b", "c"))


COMMAND = ("build", "net.onnx", "-o", "out/net.so", "--registry", "r.db", "--effort", "quick")


class Interrupted:
    """A build that got a signal when it told of its first batch, and what was left then."""

    def __init__(self, folder, number):
        environment = {**os.environ, MARK: str(folder), "TMPDIR": str(folder / "tmp")}
        (folder / "tmp").mkdir(exist_ok=True)
        command = [*PROGRAM, *COMMAND, "--json"]
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=-1, stderr=-1, text=True
        ) as process:
            self.told = ""
            for line in process.stderr:
                self.told += line
                if batch := re.match(r"(\d+)/\d+ trials", line):
                    process.send_signal(number)
                    break
            self.told += process.stderr.read()
            self.answer = process.stdout.read()
        self.code = process.returncode
        self.orphans = remaining(str(folder))
        self.outputs = everything(folder / "out")
        self.temporary = everything(folder / "tmp")
        self.acknowledged = int(batch[1])
        with Registry.open(folder / "r.db", write=False) as registry:
            self.faults = registry.verify()
            self.measured = registry.stats()["measurements"]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A build interrupted, begun again and killed, begun again and finished."""
    folder = tmp_path_factory.mktemp("story")
    onnx.save(several(), folder / "net.onnx")
    words = ("net.onnx", "--registry", "r.db", "--effort", "quick")
    planned = answer(folder, "plan", *words)["trials"]
    stopped = Interrupted(folder, signal.SIGINT)
    killed = Interrupted(folder, signal.SIGKILL)
    return folder, planned, stopped, killed, answer(folder, *COMMAND)


@pytest.mark.slow
def test_ctrl_c_is_answered_with_130_and_one_line(story):
    stopped = story[2]
    assert stopped.code == 130
    assert "Traceback" not in stopped.told
    assert "interrupted; what was measured is kept" in stopped.told
    assert json.loads(stopped.answer)["error"]["exit_code"] == 130
    assert stopped.temporary == {}


@pytest.mark.slow
def test_a_killed_build_ends_by_its_signal(story):
    assert story[3].code == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("which", [2, 3], ids=["interrupted", "killed"])
def test_a_stopped_build_leaves_no_process_and_no_output(which, story):
    assert story[which].orphans == []
    assert story[which].outputs == {}


@pytest.mark.slow
def test_the_registry_is_whole_and_holds_every_batch_that_was_told(story):
    _, _, stopped, killed, _ = story
    assert stopped.faults == killed.faults == []
    assert stopped.measured >= stopped.acknowledged
    assert killed.measured >= stopped.measured + killed.acknowledged


@pytest.mark.slow
def test_the_same_command_resumes_and_finishes(story):
    folder, planned, _, killed, made = story
    assert 0 < made["trials"] < planned
    assert made["verify"]["ok"]
    assert np.isfinite(made["latency_ms"])
    assert set(everything(folder / "out")) == {"net.so", "net.intoto.json", "net.json"}
    with Registry.open(folder / "r.db", write=False) as registry:
        assert registry.stats()["measurements"] == killed.measured + made["trials"]
