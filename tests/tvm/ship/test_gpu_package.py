"""Packages of libraries for GPUs, run where none is: by a stand-in for NVIDIA's driver and GPU."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import cuda_on_cpu, graphs
from helpers.cli_inside import answer
from helpers.graphs import model, node, randn

BUILD = ("--target", "v100", "--trials", 0, "--no-verify", "--registry", "registry.db")
PRODUCT = model([node("MatMul", "x w", "y")], {"x": (4, 16)}, ["y"], {"w": randn(1, 16, 64)})


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++, which compiles the kernels' source for this machine")
    folder = tmp_path_factory.mktemp("gpu")
    cuda_on_cpu.compile_driver(folder)
    onnx.save(PRODUCT, folder / "model.onnx")
    with pytest.MonkeyPatch.context() as patch:
        cuda_on_cpu.on_cpu(patch, folder)
        cuda_on_cpu.compiler(patch, folder)
        answer(folder, "build", "model.onnx", "-o", "model.so", *BUILD)
    return folder


def unpacked(shop, kind):
    answer(shop, "package", "model.so", "-o", f"for_{kind}.tar.gz", "--for", kind)
    with tarfile.open(shop / f"for_{kind}.tar.gz") as archive:
        archive.extractall(shop, filter="data")
    return shop / f"for_{kind}"


def run(shop, folder, *words, gpu="sm_70"):
    driver = {"LD_PRELOAD": str(shop / "libcuda.so.1"), "ANSOR_GPU": gpu}
    packages = str(Path(np.__file__).parents[1])
    return subprocess.run(
        [*map(str, words)],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": packages, **driver},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_in_c_runs_it_by_the_driver_alone(shop):
    folder = unpacked(shop, "c")
    assert "a GPU of NVIDIA's (sm_70 or newer) with its driver" in (folder / "README").read_text()
    feeds = graphs.random_feeds(PRODUCT)
    feeds["x"].tofile(folder / "x.bin")
    ran = run(shop, folder, "./run", "model.so", "x.bin", "y.bin")
    assert ran.returncode == 0, ran.stderr
    made = np.fromfile(folder / "y.bin", "float32").reshape(4, 64)
    np.testing.assert_allclose(made, graphs.run(PRODUCT, feeds)[0], rtol=1e-4, atol=1e-6)


def in_python(shop, gpu="sm_70"):
    folder = unpacked(shop, "python")
    feeds = graphs.random_feeds(PRODUCT)
    np.save(folder / "x.npy", feeds["x"])
    words = (sys.executable, "-m", "ansor_deploy_runtime", "model.so", "x=x.npy", "-o", "y.npz")
    return folder / "y.npz", feeds, run(shop, folder, *words, gpu=gpu)


def test_a_program_in_python_runs_it_by_the_driver_alone(shop):
    path, feeds, ran = in_python(shop)
    assert ran.returncode == 0, ran.stderr
    with np.load(path) as made:
        np.testing.assert_allclose(made["y"], graphs.run(PRODUCT, feeds)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        ("", "does not start: no CUDA-capable device is detected"),
        ("sm_60", "this GPU is older than the library's: sm_70"),
    ],
)
def test_python_says_what_is_wrong_with_the_gpu(shop, gpu, said):
    _, _, ran = in_python(shop, gpu)
    assert ran.returncode != 0
    assert said in ran.stderr
