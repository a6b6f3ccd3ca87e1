"""A pack for a GPU, measured where none is: by a stand-in for NVIDIA's compiler, driver and GPU."""

import json
import shutil
from contextlib import nullcontext

import onnx
import pytest
from helpers import cuda_on_cpu
from helpers.cli_inside import answer
from helpers.graphs import model, node, randn
from helpers.packs import measured

from ansor_deploy.registry.store import Registry
from ansor_deploy.tune import pack_files as packs

TUNE = (
    *("tune", "model.onnx", "--registry", "registry.db", "--effort", "quick", "--target", "v100"),
    *("--min-impact", "0%", "--pack", "out", "--trials", 4, "--farm", "this process"),
)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    if shutil.which("g++") is None:
        pytest.skip("needs g++, which compiles the kernels' source for this machine")
    cuda_on_cpu.compile_driver(tmp_path)
    cuda_on_cpu.compiler(monkeypatch, tmp_path)
    farm = nullcontext(cuda_on_cpu.InThisProcess(tmp_path))
    monkeypatch.setattr(packs, "open_farm", lambda address, warn: farm)
    product = [node("MatMul", "x w", "a"), node("Softmax", "a", "y")]
    onnx.save(
        model(product, {"x": (4, 16)}, ["y"], {"w": randn(1, 16, 64)}), tmp_path / "model.onnx"
    )
    return tmp_path


def on_gpu(folder, arch="sm_70"):
    preloaded = {"LD_PRELOAD": str(folder / "libcuda.so.1"), "ANSOR_GPU": arch}
    return measured(folder / "out", folder / "site", preloaded)


def test_candidates_are_measured_by_the_driver_alone_and_taken_in(shop):
    said = answer(shop, *TUNE)
    assert said["pack"]["tasks"] == 2
    code = shop / "out" / "code"
    assert sorted(path.name for path in code.iterdir()) == ["ansor_deploy"]
    ran = on_gpu(shop)
    assert ran.returncode == 0, ran.stderr
    results = json.loads((shop / "out" / "results.json").read_text())
    found = [one for task in results["tasks"].values() for one in task["found"]]
    assert [one["message"] for one in found if one["error"]] == []
    assert all(len(task["finalists"]) > 0 for task in results["tasks"].values())

    again = answer(shop, *TUNE)
    assert again["trials"] == len(found)
    with Registry.open(shop / "registry.db", write=False) as registry:
        assert len(registry.query()) == 2
        (row,) = registry.stats()["per_target"]
        devices = {one.provenance.device for one in registry.measurements(row["fingerprint"])}
    assert devices == {"A-processor-thread-by-thread-driver-12.9"}


def test_another_gpu_is_refused(shop):
    answer(shop, *TUNE)
    ran = on_gpu(shop, "sm_80")
    assert ran.returncode == 1
    assert "is sm_80 with 80 multiprocessors, and the pack is for sm_70" in ran.stderr


def test_without_a_driver_it_is_said(shop):
    answer(shop, *TUNE)
    ran = measured(shop / "out", shop / "site")
    assert ran.returncode == 1
    assert "no GPU can be used" in ran.stderr
    assert "no NVIDIA driver here" in ran.stderr
