"""A machine with a GPU, as a device or this one: candidates run by the driver that it finds.

The GPU is `helpers/cuda_on_cpu.py`: this machine's processor, thread by thread.
"""

import math
import shutil
from contextlib import closing

import msgspec
import numpy as np
import onnx
import pytest
from helpers import cuda_on_cpu, graphs
from helpers.graphs import node, randn
from helpers.local_board import LocalBoard, open_site

from ansor_deploy import api
from ansor_deploy.codegen.model import compile_model
from ansor_deploy.devices import bare, machine
from ansor_deploy.devices.facts import look_at
from ansor_deploy.devices.remote_model import RemoteModel
from ansor_deploy.devices.site import LocalSite
from ansor_deploy.doctor.device import check_gpu
from ansor_deploy.errors import UsageError
from ansor_deploy.measure.builder import Builder, BuildJob
from ansor_deploy.measure.libraries import Libraries
from ansor_deploy.measure.site_runner import SiteRunner
from ansor_deploy.model.prepare import prepare
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

FOLDERS = [shipped("targets")]
V100 = load_target("v100", FOLDERS)
H100 = load_target("h100", FOLDERS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++, which compiles the kernels' source for this machine")
    made = tmp_path_factory.mktemp("gpu")
    with pytest.MonkeyPatch.context() as patch:
        cuda_on_cpu.compile_driver(made)
        cuda_on_cpu.on_cpu(patch, made)
        cuda_on_cpu.compiler(patch, made)
        yield made


@pytest.fixture(scope="module")
def board(folder):
    made = LocalBoard(folder / "board")
    made.env |= {"LD_PRELOAD": str(folder / "libcuda.so.1"), "ANSOR_GPU": "sm_70"}
    return made


@pytest.fixture(scope="module")
def site(board):
    made = open_site("testboard", board.connect, cores=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def model(folder):
    product = [node("MatMul", "x w", "a"), node("Softmax", "a", "y")]
    proto = graphs.model(product, {"x": (4, 16)}, ["y"], {"w": randn(1, 16, 40)})
    onnx.save(proto, folder / "net.onnx")
    return proto, prepare(folder / "net.onnx", V100)


def test_the_gpu_is_found_and_compared_with_the_targets(board, tmp_path):
    facts = look_at("testboard", board.connect())
    assert msgspec.to_builtins(facts.gpu) == {
        "name": "A processor, thread by thread",
        "arch": "sm_70",
        "sms": 80,
        "driver": "12.9",
    }
    assert check_gpu(facts.gpu, V100.gpu).level == "ok"
    assert 'arch = "sm_70" and sms = 80' in check_gpu(facts.gpu, H100.gpu).remedy
    none = look_at("another", LocalBoard(tmp_path).connect()).gpu
    assert check_gpu(none, V100.gpu).level == "FAIL" or none is not None


def test_a_candidate_is_checked_and_timed_and_a_wrong_one_is_found(site, folder, model):
    builder = Builder(V100, folder, cuda_on_cpu.InThisProcess(folder))
    libraries = Libraries(builder)
    runner = SiteRunner(site, V100, 0, lambda task, how: libraries.reference(task, how).result)
    one, other = model[1].tasks
    for task in (one, other):
        (built,) = builder.build([BuildJob(task.workload.text, "default")])
        outcome = runner.run(task, built, "", math.inf)
        assert (outcome.error, outcome.message) == ("", "")
        assert outcome.latency > 0
        assert [turn.error for turn in runner.head_to_head(task, [built, built], ["", ""])] == [
            "",
            "",
        ]
    text = one.workload.text.replace("T.float32(0", "T.float32(1", 1)  # what a sum begins with
    (wrong,) = builder.build([BuildJob(text, "default")])
    assert runner.run(one, wrong, "", math.inf).error == "wrong-output"


def test_a_library_computes_there_what_it_should(site, folder, model):
    proto, prepared = model
    compile_model(prepared.imported, prepared.by_function, {}, V100).export(folder / "net.so", V100)
    manifest = {**prepared.imported.interfaces[0].to_json(), "target": V100.to_json()}
    there = RemoteModel(site, folder / "net.so", manifest)
    feeds = graphs.random_feeds(proto)
    (want,) = graphs.run(proto, feeds)
    np.testing.assert_allclose(there(**feeds)["y"], want, rtol=1e-4, atol=1e-6)
    there.close()


@pytest.fixture
def here(folder, monkeypatch):
    """Let this machine, and the processes that it starts, have a V100."""
    monkeypatch.setenv("LD_PRELOAD", str(folder / "libcuda.so.1"))
    monkeypatch.setenv("ANSOR_GPU", "sm_70")
    cuda_on_cpu.be_a_gpu(driver := cuda_on_cpu.driver(folder), "sm_70")
    monkeypatch.setattr(bare, "_spare", started := [])  # one of before knows of no GPU
    machine.local_gpu.cache_clear()
    yield
    cuda_on_cpu.be_a_gpu(driver, "")
    machine.local_gpu.cache_clear()
    for worker in started:
        worker.close()


def test_this_machine_is_its_gpu_where_a_target_describes_it(here, folder, tmp_path, monkeypatch):
    assert machine.automatic(FOLDERS) == "v100"
    assert machine.runs_here(V100)
    assert not machine.runs_here(H100)
    assert "another (A processor, thread by thread, sm_70 with 80" in machine.cannot_run(H100)
    with pytest.raises(UsageError, match="no target describes the GPU"):
        machine.automatic([tmp_path])
    monkeypatch.delenv("ANSOR_GPU")
    cuda_on_cpu.be_a_gpu(cuda_on_cpu.driver(folder), "")
    machine.local_gpu.cache_clear()
    assert machine.automatic(FOLDERS) == "host"
    assert "has none that a driver knows" in machine.cannot_run(V100)


def test_candidates_run_on_this_machines_gpu(here, folder, model):
    builder = Builder(V100, folder, cuda_on_cpu.InThisProcess(folder))
    task = model[1].tasks[0]
    (built,) = builder.build([BuildJob(task.workload.text, "default")])
    with closing(LocalSite(cores=1)) as site:
        outcome = SiteRunner(site, V100, 0, lambda *_: built).run(task, built, "", math.inf)
    assert (outcome.error, outcome.message) == ("", "")
    assert outcome.latency > 0


def test_a_build_is_verified_on_this_machines_gpu(here, folder, model, tmp_path):
    onnx.save(model[0], tmp_path / "net.onnx")
    where = {"output": tmp_path / "net.so", "registry": tmp_path / "r.db"}
    result = api.build(tmp_path / "net.onnx", target="v100", trials=0, **where)
    assert result.manifest.verification.verified
    assert result.manifest.ran_on is not None
