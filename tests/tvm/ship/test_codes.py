"""A library with code for several targets: one file, equal weights once, chosen when loaded."""

import json
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.archives import unpack
from helpers.built import HOST
from helpers.cli_inside import answer, program
from helpers.cli_process import refused

from ansor_deploy.runtime.model import load
from ansor_deploy.ship.verify.tolerance import compare

OLD = (
    'extends = "host"\ncpu = "x86-64-v2"\nfeatures = []\nvector_bytes = 16\nvector_registers = 16\n'
)
TABLE = 64 * 1000  # elements; no schedule packs them
pytestmark = pytest.mark.skipif(
    HOST.cpu not in ("x86-64-v3", "x86-64-v4"), reason="needs AVX2 or more"
)


def scores():
    """y = softmax(relu(rows[ids] w))."""
    nodes = [
        graphs.node("Gather", "rows ids", "r"),
        graphs.node("MatMul", "r w", "m"),
        graphs.node("Relu", "m", "p"),
        graphs.node("Softmax", "p", "y"),
    ]
    constants = {"rows": graphs.randn(0, 1000, 64), "w": graphs.randn(1, 64, 48) / 8}
    return graphs.typed(nodes, {"ids": ("int64", (9,))}, {"y": ("float32", (9, 48))}, constants)


SHORT = ("--time", "0.1s")
FEEDS = {"ids": np.arange(9) * 99 + 7}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project with a target for older processors, and a library for both."""
    folder = tmp_path_factory.mktemp("codes")
    (folder / "ansor-deploy.toml").write_text("")
    (folder / "targets").mkdir()
    (folder / "targets/old.toml").write_text(OLD)
    onnx.save(scores(), folder / "net.onnx")
    build(folder, "old,host")
    return folder


@pytest.fixture(scope="module")
def want():
    (expected,) = graphs.run(scores(), FEEDS)
    return expected


def build(folder, target, name="net.so"):
    words = ("--trials", 0, "--registry", "r.db", "--target", target, "-o", name)
    return answer(folder, "build", "net.onnx", *words, "--beside", "none")


def test_each_code_has_the_right_numbers_and_the_best_is_chosen(folder, want):
    manifest = json.loads((folder / "net.json").read_text())
    assert [one["target"]["name"] for one in manifest["codes"]] == ["host", "old"]
    assert [one["verification"]["where"] for one in manifest["codes"]] == ["native", "native"]
    best = load(folder / "net.so")
    assert (best.code, best.manifest["target"]["name"]) == (0, "host")
    for code, name in enumerate(("host", "old")):
        model = load(folder / "net.so", code=code)
        assert (model.code, model.manifest["target"]["name"]) == (code, name)
        assert compare(model(**FEEDS)["y"], want)[0]


@pytest.mark.slow
def test_each_code_runs_any_batch_of_a_range(folder):
    onnx.save(graphs.dense(64, 48), folder / "batch.onnx")
    words = ("--trials", 0, "--registry", "r.db", "--target", "old,host", "--beside", "none")
    answer(folder, "build", "batch.onnx", *words, "--input-shape", "x=1..5,64")
    x = graphs.randn(7, 5, 64)
    (expected,) = graphs.run(graphs.dense(64, 48, rows=5), {"x": x})
    for code in (0, 1):
        assert compare(load(folder / "batch.so", code=code)(x=x)["y"], expected)[0]


def test_weights_that_are_packed_alike_lie_there_once(folder):
    build(folder, "host", "host.so")
    build(folder, "old", "old.so")
    both, one, other = ((folder / f"{n}.so").stat().st_size for n in ("net", "host", "old"))
    assert max(one, other) < both < one + other - 4 * TABLE + 16_000
    assert answer(folder, "compare", "host.so", "net.so")  # with one that has no others


def test_the_older_processor_runs_the_code_that_it_can(folder, want, tmp_path):
    if (qemu := shutil.which("qemu-x86_64")) is None:
        pytest.skip("needs qemu-x86_64 (Debian: apt-get install qemu-user)")
    answer(folder, "package", "net.so", "-o", tmp_path / "p.tar.gz")
    unpack(tmp_path / "p.tar.gz", tmp_path)
    place = tmp_path / "p"
    assert "(host or old)" in (place / "README").read_text()
    FEEDS["ids"].tofile(place / "ids")
    for started in ([], [qemu, "-cpu", "Nehalem"]):
        ran = subprocess.run(
            [*started, "./run", "net.so", "ids", "y"],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert compare(np.fromfile(place / "y", np.float32).reshape(9, 48), want)[0]


def test_other_commands_read_the_code_that_runs_here(folder):
    assert answer(folder, "bench", "net.so", *SHORT)["runs"] > 0
    found = answer(folder, "profile", "net.so", *SHORT)
    assert any(one["key"] for one in found["kernels"])
    assert answer(folder, "verify", "net.so", "net.onnx")["ok"]
    assert program(folder, "verify", "net.so").returncode == 0
    words = ("report", "net.so", "--registry", "r.db", "-o", "r.md", *SHORT)
    assert program(folder, *words).returncode == 0


def test_an_unchanged_build_is_kept_and_another_set_of_targets_is_not(folder):
    assert build(folder, "host,old")["up_to_date"]
    before = (folder / "net.so").read_bytes()
    assert not build(folder, "host")["up_to_date"]
    assert not build(folder, "host,old")["up_to_date"]
    assert (folder / "net.so").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("build", "net.onnx", "--target", "host,rpi3"), "one architecture"),
        (("build", "net.onnx", "--target", "host,v100"), "one architecture"),
        (("build", "net.onnx", "--target", "host,host"), "the same machine"),
        (("build", "net.onnx", "--target", "host,none"), "there is no target 'none'"),
        (("build", "net.onnx", "--target", "host,old", "--lock", "l"), "without a lock"),
        (("build", "net.onnx", "--target", "host,old", "--device", "pi"), "without devices"),
        (("plan", "net.onnx", "--target", "host,old"), "only a build"),
        (("tune", "net.onnx", "--target", "host,old"), "only a build"),
    ],
)
def test_what_is_no_library_for_several_is_refused(folder, words, why):
    refused(program(folder, *words), 2, why)
